"""Samplers of the literature as their papers have them, to compare others with."""

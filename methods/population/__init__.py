"""Populations that are annealed."""

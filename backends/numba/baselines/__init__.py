"""Baselines in compiled code."""

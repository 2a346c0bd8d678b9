"""Annealed populations in compiled code."""

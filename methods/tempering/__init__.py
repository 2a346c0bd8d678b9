"""Parallel tempering."""

"""Draws of variables given the rest, as array programs on any backend."""

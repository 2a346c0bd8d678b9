"""Moves of clusters of variables, and exact draws of attractive models."""

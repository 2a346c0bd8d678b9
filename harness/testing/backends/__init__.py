"""Checks of a backend alone: what it says of itself, its arrays, and its random numbers."""

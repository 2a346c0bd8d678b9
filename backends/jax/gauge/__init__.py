"""Gauged lower bounds of many models at once."""

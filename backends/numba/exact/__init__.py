"""Exact answers in compiled code: elimination trees, frontiers of grids, two-layer models."""

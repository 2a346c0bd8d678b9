"""Cluster moves in compiled code."""

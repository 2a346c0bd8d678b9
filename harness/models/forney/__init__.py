"""Forney-style models: binary variables on the edges of a graph, factors on its nodes."""

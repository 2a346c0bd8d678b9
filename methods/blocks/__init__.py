"""Gibbs sampling of blocks of bounded width, each drawn exactly."""

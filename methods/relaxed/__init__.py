"""Samplers on the Gaussian relaxation: DHMC and block Gibbs."""

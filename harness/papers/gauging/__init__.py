"""Ahn, Chertkov and Shin, "Gauging Variational Inference", NIPS 2017."""

"""Sums over how many variables of each class of exchangeable ones are in which state."""

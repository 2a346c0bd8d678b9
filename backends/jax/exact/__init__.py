"""Exact answers with the arithmetic in XLA. `kernel` (exact.jax) says which solver has which name."""

"""A small vector language for Numba kernels."""

"""Marginals of all variables, however many states these have: how they are held, compared and flattened."""

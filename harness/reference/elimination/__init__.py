"""Variable elimination along an order: in NumPy, over other arrays, and a slice at a time."""

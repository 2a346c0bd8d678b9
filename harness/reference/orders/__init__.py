"""Elimination orders: the search for one, what elimination along it costs, and the tree of its buckets."""

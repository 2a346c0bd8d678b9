"""The small models on which exact solvers are compared with enumeration."""

from small_exact_models import own_cache, random_graph, random_pairwise, small_model, solvers

__all__ = ["own_cache", "random_graph", "random_pairwise", "small_model", "solvers"]

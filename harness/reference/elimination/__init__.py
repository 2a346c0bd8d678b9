"""Variable elimination: the search for an order, the plan along it, and what both cost."""

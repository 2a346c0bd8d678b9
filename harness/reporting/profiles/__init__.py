"""Many models at once: which method solves most of them, how much worse than the best, and on which class."""

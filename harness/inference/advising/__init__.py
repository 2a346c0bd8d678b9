"""`spinbench.advise`: the exact answer where it fits, else a race of methods whose winner is cross-examined."""

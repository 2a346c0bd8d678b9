"""`spinbench.bracket`: between which numbers log Z lies, the better the longer it runs.

* `bracket`: which asks one source after another, each in a process that is ended with its time;
* `sources`: who can give bounds, for which share of the budget, and what each does;
* `mini_buckets`, `annealing`: what passes, draws and tempering tell on their way;
* `interval`: what is known so far.
"""

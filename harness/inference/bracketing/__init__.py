"""`spinbench.bracket`: between which numbers log Z lies, the better the longer it runs.

* `pipeline`: `bracket`, which asks one contributor after another, each in a process that is ended with its time;
* `contributors`: who can give bounds, for which share of the budget, and what each does;
* `mini_buckets`, `lower_buckets`, `annealing`: what passes and draws tell on their way;
* `reverse`: what tempering tells of the other side, if it may be believed;
* `states`: bounds that need no method: those of best states, and of the largest entries;
* `interval`: what is known so far.
"""

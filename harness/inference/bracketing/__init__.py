"""`spinbench.bracket`: between which numbers log Z lies, the better the longer it runs.

* `bracket`: which asks one source after another, each in a process that is ended with its time;
* `sources`: those of `spinbench.bounds`, for which share of the budget each, and what they may run;
* `interval`: what is known so far.
"""

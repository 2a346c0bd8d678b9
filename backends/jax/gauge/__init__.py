"""Gauged lower bounds of many models of one graph at once; the JAX kernel of the gauged methods is a batch of one.

A run passes through these files: `batch` does what `spinbench.methods.gauge.search` does, for all models, labels and
starts together, and lets the same code on the host look at the ends; `members` is how models, and where each stands,
are laid side by side; `ascent` has the compiled Newton steps, by the rules of `spinbench.methods.gauge.ascent.newton`,
and `lanes` the objectives and derivatives that they ask for; `terms` are those of G-BP-sequential, members as well.
"""

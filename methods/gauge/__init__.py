"""Lower bounds on Z from gauges of Forney-style models: G-MF, G-BP and its corrections.

Ahn, Chertkov and Shin, "Gauging Variational Inference", NIPS 2017 (J. Stat. Mech. 2019). A gauge is a pair of inverse
2x2 matrices on every edge; it leaves Z unchanged, and wherever it keeps all tables non-negative, every partial sum of
the gauged model is a lower bound on Z.

A run passes through these files:

* `g_bp`, `g_mf`: the methods, each what it adds to the settings, the plan and the estimate that all share, `method`;
* `prepare`: the plan. A model becomes a Forney model, is contracted, and labels are chosen for its states;
* `kernel`: the engine, on every backend; one Newton step of a search a step;
* `search`: what is done with Newton steps: labels, starts, corrections. The maximisations themselves are in `ascent`;
* `looks`: where a maximisation ends, its gauge is looked at: `bounds` has lower bounds on the gauged tables, with
  rounding taken off, and `corrections` the sums of their terms with few ones;
* `sequential`: G-BP-sequential goes on from the best gauge, term by term;
* `progress`: the report that all of these keep up to date, and that the engine hands out at any time.

Which of the parts are worth having is in docs/explanations/gauged-parts.md.
"""

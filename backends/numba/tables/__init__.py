"""Gibbs sampling of any factor graph in compiled code, over flat factor tables.

    layout.py     tables variable by variable, chains in blocks of lanes, and what one update gathers
    sweeps.py     sweeps, Gibbs or Metropolis, at an inverse temperature for each chain, log T(s* <- s), log weights;
                  for other kernels, too
    single.py     random scans and single updates, chain by chain
    kernel.py     the kernels of `gibbs` and `metropolis` as `spinbench` calls them

Compiled operations over arrays of any number of chains, for array programs, are in `array_sweeps.py` and `jumps.py`;
`coupled.py` sweeps pairs of chains for `spinbench.mixing`.

To sweep chains from compiled code: `t = lane_tables(factor_tables(model), real)`, `order = sweep_order(…)[0]` and
`chains = lane_chains(seed, states, real)`; write each chain's inverse temperature to `chains.betas`; then
`run_sweeps(t, order, asked, chains, sums)`, where a sweep's number fixes its random numbers, and `sum_weights` for
d log p*^beta / d beta.
"""

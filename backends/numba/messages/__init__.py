"""Methods that pass messages on factor graphs, in compiled code; each chain by itself.

bp             bp.numba. Pairs of binary variables, sequential and undamped: sweeps over odds, here; all else:
    schedules      sequential, parallel and residual sweeps over log ratios; trw sweeps with the first
    tables         factors as flat tables, for schedules and mf
mf             mf.numba: sweeps of naive mean field; what bp and mf share
trw            trw.numba: reweighted sequential sweeps, and log Z of spanning forests
"""

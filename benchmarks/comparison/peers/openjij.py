"""openjij: its simulated annealing sampler at one temperature, with single-spin-flip Metropolis updates.

It has no Gibbs updates. A read keeps the last state alone. No seed is given: one seed would give all reads the same
states.
"""

from __future__ import annotations

import time

from comparison.contender import Contender, counted, need
from comparison.peers.reads import means
from comparison.problems import spins
from spinbench.models import PairwiseModel


def metropolis(model: PairwiseModel, *, reads: int, sweeps: int) -> Contender:
    """So many reads of so many sweeps each, sparse graph."""
    need("openjij")
    import openjij

    since = time.process_time()
    h, edges, J = spins(model)
    linear = {i: -float(value) for i, value in enumerate(h)}
    quadratic = {(int(i), int(j)): -float(value) for (i, j), value in zip(edges, J, strict=True)}
    bqm = openjij.BinaryQuadraticModel(linear, quadratic, "SPIN")
    sampler = openjij.SASampler()
    built = time.process_time() - since

    return Contender(
        library="openjij",
        distribution="openjij",
        precision="float64",
        asked=f"Metropolis, {counted(reads, 'read')} of {sweeps} sweeps, last states only",
        work=float(reads) * sweeps * model.num_variables,
        prepare=lambda number: None,
        call=lambda _: sampler.sample(bqm, schedule=[(1.0, sweeps)], num_reads=reads),
        answer=means,
        build_seconds=built,
    )

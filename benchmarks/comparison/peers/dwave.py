"""dwave-samplers: simulated annealing at one temperature is Gibbs sampling; the tree decomposition is exact.

Its documentation calls beta_schedule_type="custom" the choice for performance, and the sequential order
(randomize_order=False) faster than the random one. A read keeps the last state alone: there are no marginals over the
sweeps. sampling_ns is the time that the library itself counts as sampling.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from comparison.answers import Answer
from comparison.contender import Contender, counted, need
from comparison.peers.reads import means
from comparison.problems import spins, stacked
from spinbench.models import PairwiseModel


def gibbs(
    model: PairwiseModel,
    *,
    reads: int,
    sweeps: int,
    check_model: PairwiseModel | None = None,
    check_reads: int = 0,
    check_sweeps: int = 300,
) -> Contender:
    """So many reads of so many sweeps each.

    Args:
        check_reads: read so many states for the judge, after `check_sweeps`, where `reads` are too few.
        check_model: for the judge, where the exact answer of `model` is not known.
    """
    need("dwave.samplers", "dwave-samplers")
    since = time.process_time()
    bqm = _bqm(model)
    built = time.process_time() - since

    def check() -> Sequence[Answer]:
        other = bqm if check_model is None else _bqm(check_model)
        return [means(_sample(other, check_reads // 5, check_sweeps, 100 + number)) for number in range(5)]

    return Contender(
        library="dwave-samplers",
        distribution="dwave-samplers",
        precision="float64",
        asked=f"{counted(reads, 'read')} of {sweeps} sweeps, last states only",
        work=float(reads) * sweeps * model.num_variables,
        prepare=lambda number: number,
        call=lambda seed: _sample(bqm, reads, sweeps, seed),
        answer=(lambda _: Answer()) if check_reads else means,
        build_seconds=built,
        own_seconds=lambda found: float(found.info["timing"]["sampling_ns"]) * 1e-9,
        check=check if check_reads else None,
        share=1.0 if not check_reads else 5.0 * reads / check_reads if check_model is None else math.nan,
    )


def exact(model: PairwiseModel) -> Contender:
    """log Z and all marginals by the tree decomposition, its elimination order (min-fill) included."""
    need("dwave.samplers", "dwave-samplers")
    from dwave.samplers import TreeDecompositionSampler

    since = time.process_time()
    bqm, n = _bqm(model), model.num_variables
    built = time.process_time() - since
    # what the ±1 form leaves out: Σ (a_i / 2 + Σ_j W_ij / 8) and the model's own constant
    constant = float(model.biases.sum() / 2 + model.couplings.sum() / 4) + model.log_constant

    def answer(found: Any) -> Answer:
        one = np.array([found.info["variable_marginals"][i] for i in range(n)])
        return Answer(stacked(model, one), float(found.info["log_partition_function"]) + constant)

    return Contender(
        library="dwave-samplers tree",
        distribution="dwave-samplers",
        precision="float64",
        asked="log Z and all marginals, order included",
        work=1.0,
        prepare=lambda number: number,
        call=lambda seed: TreeDecompositionSampler().sample(bqm, num_reads=1, marginals=True, seed=seed),
        answer=answer,
        build_seconds=built,
    )


def _bqm(model: PairwiseModel) -> Any:
    """In the ±1 form, energies are minus log weights."""
    import dimod

    h, edges, J = spins(model)
    return dimod.BinaryQuadraticModel.from_numpy_vectors(
        -h, (edges[:, 0], edges[:, 1], -J), 0.0, dimod.SPIN, variable_order=range(model.num_variables)
    )


def _sample(bqm: Any, reads: int, sweeps: int, seed: int) -> Any:
    from dwave.samplers import SimulatedAnnealingSampler

    return SimulatedAnnealingSampler().sample(
        bqm,
        num_reads=reads,
        beta_schedule_type="custom",
        beta_schedule=[1.0],
        num_sweeps_per_beta=sweeps,
        proposal_acceptance_criteria="Gibbs",
        randomize_order=False,
        seed=seed,
    )

"""pgmpy's Gibbs sampler, which tabulates a conditional for each state of all other variables: small models only."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from comparison.answers import Answer
from comparison.contender import Contender, need
from spinbench.backends.peers.tables import tables
from spinbench.models import PairwiseModel


def gibbs(model: PairwiseModel, *, samples: int) -> Contender:
    """`samples` sweeps, each of which it keeps."""
    need("pgmpy")
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.models import DiscreteMarkovNetwork
    from pgmpy.sampling import GibbsSampling

    since = time.process_time()
    given, n = tables(model), model.num_variables
    network = DiscreteMarkovNetwork([(str(i), str(j)) for i, j in model.edges])
    network.add_factors(
        *(DiscreteFactor([str(v) for v in s], t.shape, t) for s, t in zip(given.scopes, given.tables, strict=True))
    )
    sampler = GibbsSampling(network)
    built = time.process_time() - since

    def call(seed: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return sampler.sample(size=samples, seed=seed)

    return Contender(
        library="pgmpy",
        distribution="pgmpy",
        precision="float64",
        asked=f"{samples} sweeps of 1 chain, all kept",
        work=float(samples) * n,
        prepare=lambda number: number,
        call=call,
        answer=lambda frame: Answer(frame[[str(v) for v in range(n)]].to_numpy(dtype=np.float64).mean(axis=0)),
        build_seconds=built,
    )

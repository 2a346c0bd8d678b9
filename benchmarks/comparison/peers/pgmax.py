"""PGMax: loopy belief propagation compiled by JAX, float32, all messages at once.

It does not stop at a tolerance within a call: as many iterations as bring the largest change to 1e-6 are found before
the clock runs, without damping (all models of the comparison converge so). Version 0.6.1 asks jax.lib.xla_bridge, which
JAX has dropped, for the platform: it is lent the function that replaced it.
"""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np

from comparison.answers import Answer
from comparison.contender import Contender, MissingPeerError, need
from comparison.peers.lending import lent
from comparison.problems import stacked
from spinbench.models import PairwiseModel

TOLERANCE = 1e-6


def bp(model: PairwiseModel) -> Contender:
    """From uniform messages to beliefs."""
    need("pgmax", "PGMax")
    import jax
    import jax.extend
    import jax.numpy as jnp

    try:
        from pgmax import fgraph, fgroup, infer, vgroup
    except ImportError as error:
        raise MissingPeerError(f"PGMax does not run here: {error}") from error

    since = time.process_time()
    variables = vgroup.NDVarArray(num_states=2, shape=(model.num_variables,))
    graph = fgraph.FactorGraph(variable_groups=variables)
    tables = np.zeros((model.num_edges, 2, 2))
    tables[:, 1, 1] = model.couplings
    pairs = [[variables[int(i)], variables[int(j)]] for i, j in model.edges]
    graph.add_factors(fgroup.PairwiseFactorGroup(variables_for_factors=pairs, log_potential_matrix=tables))
    with lent(jax.lib, "xla_bridge", SimpleNamespace(get_backend=jax.extend.backend.get_backend)):
        propagation = infer.build_inferer(graph.bp_state, backend="bp")
    evidence = np.stack([np.zeros(model.num_variables), model.biases], axis=1)
    start = propagation.init(evidence_updates={variables: jnp.asarray(evidence, "float32")})
    built = time.process_time() - since

    def iterate(iterations: int) -> Any:
        def run(arrays: Any) -> Any:
            arrays, changes = propagation.run_with_diffs(arrays, iterations, damping=0.0, temperature=1.0)
            return infer.get_marginals(propagation.get_beliefs(arrays))[variables], changes

        return jax.jit(run)

    needed = 0
    for limit in (64, 256, 1024):
        changes = np.asarray(iterate(limit)(start)[1])
        if (changes <= TOLERANCE).any():
            needed = int(np.argmax(changes <= TOLERANCE)) + 1
            break
    if not needed:
        raise MissingPeerError(f"PGMax does not converge on {model.name} in 1024 iterations")
    run = iterate(needed)
    return Contender(
        library="PGMax",
        distribution="pgmax",
        precision="float32",
        asked=f"{needed} iterations to a largest change of {TOLERANCE:g}, marginals",
        work=1.0,
        prepare=lambda number: start,
        call=lambda arrays: jax.block_until_ready(run(arrays)),
        answer=lambda found: Answer(stacked(model, np.asarray(found[0], dtype=np.float64)[:, 1])),
        build_seconds=built,
        compiles=True,
    )

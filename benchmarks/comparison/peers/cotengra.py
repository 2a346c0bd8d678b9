"""cotengra: contraction of the model's tables as a tensor network.

log Z is the contraction, and all marginals together are its gradient with respect to the tables of single variables:
differentiating log Z by an entry t gives p / t. As its documentation shows for repeated contractions, the expression is
made once (`array_contract_expression`) and compiled together with its gradient by JAX, which for a 10 × 10 grid takes
20 seconds; the search for an order, by random greedy trials, is before that. What is timed is the compiled call.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from comparison.answers import Answer
from comparison.contender import Contender, need
from comparison.problems import Model
from spinbench.backends.peers.tables import tables

TRIALS = 64
"""Of the greedy search; on a 10 × 10 grid they find an order of width 10."""


def exact(model: Model) -> Contender:
    """log Z and all marginals, in double precision."""
    need("cotengra")
    import cotengra as library
    import jax

    given = tables(model)
    inputs = [tuple(map(str, scope)) for scope in given.scopes]
    sizes = {str(v): size for v, size in enumerate(given.sizes)}
    since = time.process_time()
    search = library.RandomGreedyOptimizer(max_repeats=TRIALS, accel=False, seed=0)
    contract = library.array_contract_expression(inputs, (), size_dict=sizes, optimize=search)
    both = jax.jit(jax.value_and_grad(lambda given: jax.numpy.log(contract(*given))))
    built = time.process_time() - since

    def call(_: Any) -> Any:
        with jax.enable_x64(True):
            return jax.block_until_ready(both(given.tables))

    def answer(found: Any) -> Answer:
        log_z, gradients = found
        single = {
            scope[0]: np.asarray(gradient) * table
            for scope, gradient, table in zip(given.scopes, gradients, given.tables, strict=True)
            if len(scope) == 1
        }
        normal = [single[v] / single[v].sum() for v in range(len(given.sizes))]
        return Answer(np.concatenate(normal), float(log_z) + given.scale)

    return Contender(
        library="cotengra",
        distribution="cotengra",
        precision="float64",
        asked="log Z and its gradient, compiled; the order searched before",
        work=1.0,
        prepare=lambda number: None,
        call=call,
        answer=answer,
        build_seconds=built,
        compiles=True,
    )

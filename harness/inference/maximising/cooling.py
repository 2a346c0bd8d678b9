"""Heaviest states by a method that samples: of the model at a β at which nearly all variables stay."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np

from spinbench.api import Engine, Estimate, Method, Tables
from spinbench.api.trace import Trace
from spinbench.errors import UnsupportedError
from spinbench.inference.budget import Budget
from spinbench.inference.driver import drive
from spinbench.inference.maximising.annealing import Annealed
from spinbench.inference.notebook.progress import followed
from spinbench.inference.stored_states.recorder import check_states
from spinbench.models import FactorGraph, Model, PairwiseModel


def cooled(model: Model, beta: float) -> Model:
    """p*^β; zeros stay zeros."""
    if isinstance(model, PairwiseModel):
        return dataclasses.replace(
            model,
            biases=beta * model.biases,
            couplings=beta * model.couplings,
            log_constant=beta * model.log_constant,
            origin=None,
        )
    factors = [(factor.scope, beta * factor.log_table) for factor in model.factors]
    return FactorGraph.from_log_tables(
        model.cardinalities, factors, log_constant=beta * model.log_constant, name=model.name
    )


def cool(
    engine: Engine,
    method: Method,
    tables: Tables,
    model: Model,
    start: np.ndarray,
    budget: Budget,
    *,
    seed: int,
    who: str,
) -> Annealed:
    """Run a method until its budget is spent; where its chains are in the end is what was found.

    Args:
        engine: bound to the model that was cooled.
        method, tables, model: of the engine.
        start: (N, C) states.
        budget: samples of each chain, burn-in on top of them, or seconds.
        seed: of all random numbers.
        who: method and backend, for the message.

    Raises:
        UnsupportedError: the engine does not tell states.
        InvalidResultError: what it tells are none.
        BudgetError: the seconds are over before a sample.
    """
    trace = Trace(method.reductions, method.batches(start.shape[1]), method.counted_by, start.shape[1], 0)
    warm_up = partial(method.warm_up, tables)
    with followed(who, budget, lambda: trace.samples, start.shape[1]):
        nothing = lambda seen: Estimate()  # noqa: E731
        run = drive(engine, trace, nothing, budget, start=start, seed=seed, warm_up=warm_up, checkpoints=1)
    states = engine.states(run.state)
    if states is None:
        raise UnsupportedError(f"target='map' was given; {who} hands over no states")
    ended = check_states(states, model, who)
    return Annealed([ended], run.burn_in + trace.samples, run.compile_seconds, run.burn_in_seconds + run.run_seconds)

"""A model as factors along an order of elimination, and the way back to its variables."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from spinbench.api import Model, Trace
from spinbench.mathematics.graphs.factor_tables import starts_of
from spinbench.methods.buckets.draws import DEAD
from spinbench.methods.buckets.layout import Array
from spinbench.reference.network import FlatFactors
from spinbench.reference.problem import Problem

FloatArray = npt.NDArray[np.float64]


@lru_cache(maxsize=4)
def problem_of(model: Model) -> Problem:
    """The model without the states that its hard zeros rule out, and without variables of one state.

    Raises:
        ModelError: the hard zeros leave a variable no state, so Z = 0.
    """
    return Problem(model)


def factors_of(problem: Problem, order: Array) -> FlatFactors:
    """The factors, their variables numbered by their place in the order; the axes of tables stay."""
    flat = problem.flat
    return replace(flat, states=flat.states[order], scope=np.argsort(order)[flat.scope])


def all_states(cards: Array, later: FloatArray, total: FloatArray) -> FloatArray:
    """(…, Σ K_v, C) of all states, from (…, Σ (K_v - 1), C) of states 1, 2, … and what each variable's add up to."""
    ends = starts_of(cards - 1)
    first = starts_of(cards)[:-1]
    all_rows = np.empty((*later.shape[:-2], int(cards.sum()), later.shape[-1]))
    is_later = np.ones(all_rows.shape[-2], dtype=bool)
    is_later[first] = False
    all_rows[..., is_later, :] = later
    if len(cards):
        rest = np.add.reduceat(later, ends[:-1], axis=-2)
        all_rows[..., first, :] = np.maximum(total[..., None, :] - rest, 0.0)
    return all_rows


def draws_of(model: Model, trace: Trace) -> tuple[Array, FloatArray]:
    """(N, S) states of the model and (S,) log weights, of the last draw of each chain and batch."""
    states, logs = trace.series("states").astype(np.int64), trace.series("drawn").ravel()
    flat = np.moveaxis(states, 1, 2).reshape(logs.size, -1)
    return problem_of(model).origin.lift(flat).T, np.where(logs > DEAD, logs, -np.inf)

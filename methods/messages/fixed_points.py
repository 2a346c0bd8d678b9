"""Iterations towards fixed points, one a chain, which stay where they are once they have converged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spinbench.api import Array, Backend, Key, Method, Precision, Program, Tables, Trace
from spinbench.api.types import TablesT
from spinbench.foundation.parameters import check_setting

# Smallest tolerance, in units in the last place: sums of messages are not more precise, and a smaller tolerance might
# never be reached.
ROUNDING = 20


class State(NamedTuple):
    """What chains carry.

    Attributes:
        values: (…, C) what the iteration changes.
        residual: (C,) largest change in the last iteration.
        iterations: (C,) until convergence.
        converged: (C,) 1 where the residual fell to the tolerance; such chains stay as they are.
    """

    values: Array
    residual: Array
    iterations: Array
    converged: Array


@dataclass(frozen=True, kw_only=True)
class FixedPointMethod(Method[TablesT]):
    """A method that iterates towards a fixed point; its reductions include the statistic `converged`.

    Attributes:
        tolerance: the iteration ends when nothing changes by more.
    """

    tolerance: float = 1e-9

    model_form = "any"
    kind = "iteration"

    def __post_init__(self) -> None:
        check_setting(self, "tolerance", self.tolerance > 0, "a positive number")

    def smallest_change(self, precision: Precision) -> float:
        """At which a chain has converged, in arithmetic of a precision."""
        return max(self.tolerance, ROUNDING * float(np.finfo(precision).eps))

    def finished(self, trace: Trace) -> bool:
        """Whether all chains that are computed have converged."""
        return bool(trace.total("converged").min() > 0)


def fixed_point_program(
    method: FixedPointMethod,
    backend: Backend,
    begin: Callable[[Tables, Array], Array],
    update: Callable[[Tables, Array], tuple[Array, Array]],
    observe: Callable[[Tables, State], dict[str, Array]],
) -> Program:
    """The program of an iteration.

    Args:
        method: whose tolerance counts.
        backend: that it runs on.
        begin: (tables, start) -> values.
        update: (tables, values) -> new values and by how much each of them changes, of any shape with chains last.
        observe: (tables, state) -> statistics.
    """
    xp, tolerance = backend.xp, method.smallest_change(backend.precision)

    def init(key: Key, tables: Tables, start: Array) -> State:
        values = begin(tables, start)
        zeros = xp.zeros_like(xp.sum(xp.reshape(values, (-1, values.shape[-1])), axis=0))
        return State(values, zeros, zeros, zeros)

    def iterate(tables: Tables, state: State) -> State:
        fresh, change = update(tables, state.values)
        zeros = xp.zeros_like(state.residual)
        # A row of zeros is added, since the maximum of an empty array is an error.
        change = xp.concat([xp.reshape(change, (-1, zeros.shape[0])), zeros[None, :]], axis=0)
        residual, ended = xp.max(change, axis=0), state.converged > 0
        return State(
            # Chains that have converged are not updated, so that their answer does not depend on how long other chains
            # take.
            values=xp.where(ended, state.values, fresh),
            residual=xp.where(ended, state.residual, residual),
            iterations=state.iterations + xp.where(ended, zeros, xp.ones_like(residual)),
            converged=xp.where(ended | (residual <= tolerance), xp.ones_like(residual), zeros),
        )

    def step(key: Key, tables: Tables, state: State) -> State:
        """One iteration, unless all chains have converged."""
        active = xp.astype(xp.min(state.converged) <= 0, xp.int32)
        stepped: State = backend.fori_loop(0, active, lambda _, now: iterate(tables, now), state)
        return stepped

    return Program(init, step, observe)


def statistics(name: str, values: Array, state: State) -> dict[str, Array]:
    """The values under a name, and the rest of the state."""
    return {name: values, "residual": state.residual, "iterations": state.iterations, "converged": state.converged}

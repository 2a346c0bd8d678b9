"""Generic programs in which a test may plant a bug: states in place, keys that are drawn from twice, temperatures.

Installed as a plugin by test_planted_bugs.py.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from spinbench.api import Conformance, Estimate, Method, Program, standard_error
from spinbench.errors import SpinbenchError, UnsupportedError


def field(backend, tables, s, i):
    return backend.xp.sum(tables[1][i][:, None] * s, axis=0) + tables[0][i]


def sweep(backend, key, tables, s, beta=1.0, donate=False):
    def site(i, s):
        u = backend.uniform(backend.fold_in(key, i), (s.shape[1],))
        on = backend.xp.astype(u < 0.5 + 0.5 * backend.xp.tanh(0.5 * beta * field(backend, tables, s, i)), backend.real)
        return backend.update(s, i, on, donate=donate)

    return backend.fori_loop(0, tables[0].shape[0], site, s)


@dataclass(frozen=True)
class Placed(Method):
    """Gibbs sampling that donates its state to `update`, and reports it as it is."""

    name = "placed"
    summary = "Gibbs in raster order, states in place"

    @property
    def reductions(self):
        return {"s": "last"} if self.name == "placed" else {"s": "sum"}

    def plan(self, model):
        if model.groups or model.num_variables > 12:
            raise UnsupportedError("placed takes up to 12 binary variables")
        return model.biases, model.dense()

    def program(self, backend):
        return Program(
            init=lambda key, tables, start: start + 0,
            step=lambda key, tables, s: sweep(backend, key, tables, s, donate=True),
            observe=lambda tables, state: {"s": state},
        )

    def estimate(self, model, tables, trace):
        series = trace.series("s")
        return Estimate(marginals=series.mean(axis=(0, 2)), marginals_se=standard_error(series))


@dataclass(frozen=True)
class Rekeyed(Placed):
    """Metropolis, of which a test may take the number that its proposal took."""

    bug: str = ""
    way: Literal["up", "down"] = "up"

    name = "rekeyed"
    summary = "Metropolis, one variable in turn"

    def program(self, backend):
        xp = backend.xp
        twice = self.bug in ("one key", f"one key {self.way}")

        def step(key, tables, s):
            def site(i, s):
                own = backend.fold_in(key, i)
                again = own if twice else backend.fold_in(own, 1)
                moved = xp.astype(backend.uniform(own, (s.shape[1],)) < 0.7, backend.real)
                gain = (1 - 2 * backend.take(s, i)) * field(backend, tables, s, i)
                kept = backend.uniform(again, (s.shape[1],)) < xp.exp(gain)
                turn = moved * xp.astype(kept, backend.real)
                return backend.update(s, i, backend.take(s, i) * (1 - turn) + (1 - backend.take(s, i)) * turn)

            return backend.fori_loop(0, tables[0].shape[0], site, s)

        return Program(init=lambda key, tables, start: start, step=step, observe=lambda tables, state: {"s": state})


@dataclass(frozen=True)
class Tempered(Placed):
    """Two temperatures that swap. What starts the second one is no exact draw of its law."""

    name = "tempered"
    summary = "two temperatures"
    conformance = Conformance(burn_in_first=True)

    def plan(self, model):
        if np.abs(model.couplings).max(initial=0) > 30:
            raise UnsupportedError("tempered mixes where couplings are at most 30")
        return super().plan(model)

    def program(self, backend):
        xp = backend.xp

        def weight(tables, s):
            return xp.sum(tables[0][:, None] * s, axis=0) + 0.5 * xp.sum(s * (tables[1] @ s), axis=0)

        def step(key, tables, state):
            cold = sweep(backend, backend.fold_in(key, 0), tables, state[0])
            hot = sweep(backend, backend.fold_in(key, 1), tables, state[1], 0.2)
            u = backend.uniform(backend.fold_in(key, 2), (cold.shape[1],))
            swap = xp.log(u) < 0.8 * (weight(tables, hot) - weight(tables, cold))
            return xp.where(swap, hot, cold), xp.where(swap, cold, hot)

        return Program(
            init=lambda key, tables, start: (start, start * 0),
            step=step,
            observe=lambda tables, state: {"s": state[0]},
        )


@dataclass(frozen=True)
class Unburnt(Tempered):
    name = "unburnt"
    conformance = Conformance()


@dataclass(frozen=True)
class Deaf(Placed):
    """Gibbs sampling with settings that change nothing, or nothing by themselves; one of them nobody reads."""

    pace: float = 1.0
    """Is read where the bug is another one."""
    max_bytes: int = 2**30
    """A limit."""
    unroll: int = 4
    """For speed."""
    rounds: int = 1
    """Counts beside way=down alone."""
    way: Literal["up", "down"] = "up"
    bug: str = ""

    name = "deaf"
    summary = "Gibbs in raster order, with settings"

    def __post_init__(self):
        if self.pace < 0:
            raise SpinbenchError(f"deaf: pace={self.pace} was given; at least 0 is needed")

    def plan(self, model):
        if 8 * model.num_variables**2 > self.max_bytes:
            raise UnsupportedError("deaf: max_bytes")
        return super().plan(model)

    def program(self, backend):
        plain = super().program(backend)
        sweeps = max(self.rounds, 1) if self.way == "down" else max(self.unroll, 1) // max(self.unroll, 1)
        pace = 1.0 if self.bug else self.pace

        def step(key, tables, s):
            def again(i, s):
                return plain.step(backend.fold_in(key, i), tables, s)

            return backend.fori_loop(0, sweeps * int(pace > 0) + int(pace <= 0), again, s)

        return replace(plain, step=step)

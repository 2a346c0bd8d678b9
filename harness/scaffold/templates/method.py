"""A method to start from: naive mean field. Replace the mathematics.

`spinbench check --method mine` says what is still wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from spinbench.api import Array, Backend, Estimate, Key, Method, PairwiseModel, Program, Reduction, Trace
from spinbench.errors import SpinbenchError, UnsupportedError


class Tables(NamedTuple):
    """What the program needs to know of the model: NumPy arrays, which the harness puts onto the device.

    a: (N,) float64, biases. W: (N, N) float64, couplings.
    """

    a: Array
    W: Array


class State(NamedTuple):
    """What is carried from step to step. The chains' axis is the last.

    m: (N, C), p(s_i = 1) of the factorised approximation. change: (C,), how far the last sweep moved it.
    """

    m: Array
    change: Array


@dataclass(frozen=True)
class MyMethod(Method[Tables]):
    """Naive mean field: the independent law with means m that maximises a lower bound on log Z.

    log Z ≥ a·m + ½ mᵀWm + Σ_i H(m_i), H the binary entropy; a sweep sets m_i = σ(a_i + Σ_j W_ij m_j) for each i in
    turn (Wainwright and Jordan, "Graphical models, exponential families, and variational inference", 2008, eq. 5.17).

    Attributes:
        tolerance: the iteration ends when a sweep moves no m_i by more.
    """

    tolerance: float = 1e-6

    name: ClassVar[str] = "mine"  # name of the entry point
    summary: ClassVar[str] = "naive mean field, a lower bound on log Z"
    kind = "iteration"  # leave this line out for a sampler

    def __post_init__(self) -> None:
        if not self.tolerance > 0:
            raise SpinbenchError(f"method mine: tolerance={self.tolerance} was given; a positive number is needed")

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """What `observe` reports, and how a batch of steps combines it: sum, logsumexp or last."""
        return {"m": "last", "change": "last"}

    def plan(self, model: PairwiseModel) -> Tables:  # type: ignore[override]
        """All work that depends on the model alone. Refuse here what would come out wrong."""
        if model.groups:
            raise UnsupportedError(f"{model.name}: method mine knows no variables of more than two states")
        return Tables(model.biases, model.dense())

    def program(self, backend: Backend) -> Program[Tables, State]:
        """Pure functions, with `backend.xp` in place of NumPy: no writing into arrays, no `if` on their values."""
        xp = backend.xp

        def init(key: Key, tables: Tables, start: Array) -> State:
            return State(start, xp.ones_like(start[0, :]))

        def step(key: Key, tables: Tables, state: State) -> State:
            def site(i: int | Array, m: Array) -> Array:
                field = backend.take(tables.a, i) + backend.take(tables.W, i) @ m
                return backend.update(m, i, 0.5 + 0.5 * xp.tanh(0.5 * field))  # σ, without overflow

            m = backend.fori_loop(0, tables.a.shape[0], site, state.m)
            return State(m, xp.max(xp.abs(m - state.m), axis=0))

        def observe(tables: Tables, state: State) -> dict[str, Array]:
            return {"m": state.m, "change": state.change}

        return Program(init, step, observe)

    def finished(self, trace: Trace) -> bool:
        """Whether further steps would change nothing. Leave it out for a sampler."""
        return bool(trace.total("change").max() <= self.tolerance)

    def estimate(self, model: PairwiseModel, tables: Tables, trace: Trace) -> Estimate:  # type: ignore[override]
        """From all statistics so far to the answer: the best bound that a chain found.

        A sampler averages `trace.mean(…)` over chains, and takes standard errors from `spinbench.api.standard_error`.
        """
        m = np.clip(trace.total("m"), 0.0, 1.0)
        bounds = model.log_constant + tables.a @ m + 0.5 * (m * (tables.W @ m)).sum(axis=0) + _entropy(m).sum(axis=0)
        best = int(bounds.argmax())
        return Estimate(
            marginals=m[:, best],
            log_z=float(bounds[best]),
            log_z_kind="lower",
            doubts=() if trace.total("change")[best] <= self.tolerance else ("not converged",),
        )


def _entropy(m: np.ndarray) -> np.ndarray:
    from scipy.special import entr

    return np.asarray(entr(m) + entr(1.0 - m))

"""Belief propagation (sum-product) on factor graphs; exact on trees.

Pearl, "Probabilistic Reasoning in Intelligent Systems" (1988); Kschischang, Frey and Loeliger, "Factor graphs and the
sum-product algorithm" (2001). See `spinbench.methods.messages.arrays` for the equations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from spinbench.api import (
    Array,
    Backend,
    Conformance,
    Estimate,
    MethodProfile,
    Model,
    Namespace,
    Program,
    Reduction,
    Trace,
)
from spinbench.errors import UnsupportedError
from spinbench.foundation.parameters import check_choice, check_setting, is_int_at_least
from spinbench.mathematics.graphs.lowering import lower
from spinbench.mathematics.graphs.message_layouts import Graph, Incidence, incidence, marginals
from spinbench.methods.messages.arrays import MessagePassing, bethe
from spinbench.methods.messages.fixed_points import FixedPointMethod, fixed_point_program, statistics
from spinbench.methods.messages.pair_beliefs import pair_beliefs

Schedule = Literal["auto", "parallel", "sequential", "residual"]

# Absolute value of the messages (log ratios) at the start of further chains.
START = 1.0
# Largest change of messages at which beliefs of factors agree with those of variables; above it no joint probabilities
# are reported.
AGREEING = 1e-4


class Tables(NamedTuple):
    """The lowered model and which messages reach which row."""

    graph: Graph
    incidence: Incidence


@dataclass(frozen=True, kw_only=True)
class BeliefPropagation(FixedPointMethod[Tables]):
    """Loopy belief propagation (sum-product), exact on trees.

    The first chain starts from uniform messages (for pairwise models, uniform in the ±1 form, so that it does not
    matter which state is called 0). With more restarts the other chains start from messages that point to their start
    states, and of those that converge the one with the largest Bethe log Z (the lowest free energy) is reported. A
    converged answer may still be wrong: log Z is an estimate, neither bound, and exact on trees.

    Zeros that leave a variable no state are found when planning, by arc consistency; on graphs with loops Z can be
    zero without that, and then nothing is noticed.

    Attributes:
        schedule: "parallel" (flooding: all messages from the old ones), "sequential" (a sweep over the variables in
            their order and back, each message from the newest ones), "residual" (always the message that would
            change most; Elidan, McGraw and Koller, UAI 2006; an iteration is as many updates as there are messages);
            "auto" is sequential in compiled code and parallel on arrays, where it is the only one.
        damping: d in [0, 1): a message becomes the old one to the power d times the new one to the power 1 - d.
        tolerance: the iteration ends when no message changes by more: the difference of log ratios, relative where
            they are above 1. In float32 changes below 2.4e-6 count as none.
        restarts: chains that are computed, at most all.
    """

    schedule: Schedule = "auto"
    damping: float = 0.0
    restarts: int = 1

    name: ClassVar[str] = "bp"
    summary: ClassVar[str] = "loopy belief propagation; Bethe log Z, exact on trees"
    profile = MethodProfile(family="messages")
    conformance = Conformance(exact_on_trees=True)

    def __post_init__(self) -> None:
        check_choice(self, "schedule", Schedule)
        check_setting(self, "damping", 0 <= self.damping < 1, "a number from 0 to below 1")
        super().__post_init__()
        check_setting(self, "restarts", is_int_at_least(self.restarts, 1), "an integer of at least 1")

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """messages (M, r), log ratios, of r = min(restarts, chains); residual (r,), relative above 1, iterations and
        converged (r,): as in `State`."""
        return dict.fromkeys(("messages", "residual", "iterations", "converged"), "last")

    def plan(self, model: Model) -> Tables:
        """Tables of messages.

        Raises:
            ModelError: the hard zeros leave a variable no state.
        """
        graph = lower(model)
        return Tables(graph, incidence(graph))

    def program(self, backend: Backend) -> Program:
        """Flooding over `backend`'s arrays."""
        if self.schedule not in ("auto", "parallel"):
            raise UnsupportedError(
                f"bp: schedule={self.schedule} runs on backend numba only; {backend.name} offers schedule=parallel"
            )
        xp, d, passing = backend.xp, self.damping, MessagePassing(backend.xp)

        def begin(t: Tables, start: Array) -> Array:
            return start_messages(t.graph, t.incidence.target, start, self.restarts, xp)

        def update(t: Tables, messages: Array) -> tuple[Array, Array]:
            new = passing.updated(t.graph, passing.totals(t.graph, t.incidence, messages), messages)
            change = xp.abs(new - messages) / xp.maximum(xp.abs(new), 1.0)
            if d:
                new = d * messages + (1 - d) * new
            return new, change

        return fixed_point_program(self, backend, begin, update, lambda t, s: statistics("messages", s.values, s))

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """Beliefs and Bethe's log Z of the chosen restart; no log Z, and not converged, where messages contradict each
        other or are not finite."""
        messages, residual = trace.total("messages"), trace.total("residual")
        beliefs, log_z = bethe(*tables, messages)
        is_finite = np.isfinite(log_z)
        converged = (trace.total("converged") > 0) & is_finite
        chosen = choose(log_z, residual, converged)
        finite = bool(np.isfinite(beliefs[:, chosen]).all())
        agree = finite and bool(residual[chosen] <= AGREEING)
        return Estimate(
            marginals=marginals(tables.graph, model, beliefs[:, chosen]) if finite else None,
            log_z=float(log_z[chosen]) if is_finite[chosen] else None,
            log_z_kind="estimate",
            pairs=partial(pair_beliefs, model, *tables, messages[:, [chosen]], beliefs[:, chosen]) if agree else None,
            diagnostics={
                "residual": float(residual[chosen]),
                "iterations": float(trace.total("iterations")[chosen]),
                "converged_restarts": float(converged.sum()),
            },
            doubts=() if converged[chosen] else ("not converged",),
        )


def choose(log_z: np.ndarray, residual: np.ndarray, converged: np.ndarray) -> int:
    """The restart to report: the first of those with the largest log Z among the converged ones (to a relative 1e-9,
    so that rounding does not choose), or if none is, the one with the smallest residual, with a log Z if one has."""
    if not converged.any():
        is_finite = np.isfinite(log_z)
        return int(np.where(is_finite if is_finite.any() else np.isfinite(residual), residual, np.inf).argmin())
    best = log_z[converged].max()
    return int(np.flatnonzero(converged & (log_z >= best - 1e-9 * max(1.0, abs(best))))[0])


def start_messages(graph: Graph, target: Array, start: Array, restarts: int, xp: Namespace) -> Array:
    """(M, r) neutral messages in the first chain, in the others ones that point to their starts (N, C)."""
    states = xp.take(start[:, :restarts], graph.source, axis=0)
    high = xp.ones_like(states)
    signs = xp.where(states == xp.astype(graph.aim, states.dtype)[:, None], high, -high)
    index = xp.arange(signs.shape[1])[None, :]
    rows = xp.where(index == 0, xp.zeros_like(signs), START * signs)
    messages = xp.take(rows, target, axis=0)
    neutral = xp.reshape(graph.pairs.neutral, (-1, 1))
    edges = neutral.shape[0]
    return xp.concat([messages[:edges, :] + neutral, messages[edges:, :]], axis=0)

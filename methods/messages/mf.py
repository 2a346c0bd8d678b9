"""Naive mean field: the best factorised law q(x) = Π_v q_v(x_v), a lower bound on log Z.

    log Z >= Σ_f E_q log f(x_f) + Σ_v H(q_v)

is raised by q_v(x_v) ∝ exp Σ_{f ∋ v} E_q[log f | x_v], one variable after another (Wainwright and Jordan, "Graphical
models, exponential families, and variational inference", 2008, section 5.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from spinbench.api import Array, Backend, Estimate, Index, MethodProfile, Model, Namespace, Program, Reduction, Trace
from spinbench.foundation.arithmetic import take
from spinbench.mathematics.graphs.ascent_layouts import Ascent, Entries, Neighbours, ascent
from spinbench.mathematics.graphs.feasible_starts import feasible_states
from spinbench.mathematics.graphs.lowering import lower
from spinbench.mathematics.graphs.message_layouts import FloatArray, Graph, IntArray, factors, marginals
from spinbench.mathematics.rounding import work_of
from spinbench.methods.chain_program import ArrayOperations
from spinbench.methods.messages.fixed_points import FixedPointMethod, State, fixed_point_program, statistics

# Log odds of the initial state's value at the start of each chain.
START = 1.0
# Number of feasible states that are searched if factors have zeros; chains start at them in turn.
STARTS = 8
# Stands for probability 0 beside hard zeros: products of several smaller numbers would underflow and hide weight on a
# zero.
NONE = 1e-12


class Tables(NamedTuple):
    """The lowered model, the order of updates, allowed states (n, `STARTS`), or (n, 0) without zeros, and nats () by
    which rounding may put a bound off."""

    graph: Graph
    ascent: Ascent
    feasible: IntArray
    rounding: FloatArray


@dataclass(frozen=True, kw_only=True)
class MeanField(FixedPointMethod[Tables]):
    """Naive mean field: coordinate ascent from several starts; the best lower bound is reported, with its q.

    The first chain starts from uniform q, the others lean towards their start states. On arrays, variables of one
    colour are updated together; compiled sweeps go through the variables in their order. Both never lower the bound.

    With hard zeros q must put no weight on forbidden states, so that each chain starts at a state that is allowed
    (found by search when planning) and gives weight only to what stays allowed whatever the other variables do.

    Attributes:
        tolerance: the iteration ends when a sweep changes no probability by more; in float32 changes below 2.4e-6
            count as none. The bound holds from the first sweep on.
    """

    name: ClassVar[str] = "mf"
    summary: ClassVar[str] = "naive mean field, a lower bound on log Z"
    profile = MethodProfile(family="messages")

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """q: (S, C) probabilities of all states of all variables; residual, iterations and converged: (C,)."""
        return dict.fromkeys(("q", "residual", "iterations", "converged"), "last")

    def plan(self, model: Model) -> Tables:
        """Tables of updates.

        Raises:
            ModelError: the hard zeros leave a variable no state.
            UnsupportedError: no allowed state was found.
        """
        graph = lower(model)
        rounding = np.array(work_of(model).allowance())
        return Tables(graph, ascent(graph), feasible_states(graph, STARTS, model.name), rounding)

    def program(self, backend: Backend) -> Program:
        """Sweeps over `backend`'s arrays, colour by colour."""
        ascend = _Ascent(backend)

        def begin(t: Tables, start: Array) -> Array:
            return start_probabilities(t, start, backend.xp)

        def update(t: Tables, q: Array) -> tuple[Array, Array]:
            fresh = ascend.sweep(t.ascent, q)
            return fresh, backend.xp.abs(fresh - q)

        def observe(t: Tables, state: State) -> dict[str, Array]:
            flat = backend.xp.reshape(state.values, (-1, state.values.shape[-1]))
            return statistics("q", backend.xp.take(flat, t.ascent.states, axis=0), state)

        return fixed_point_program(self, backend, begin, update, observe)

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """The largest of the chains' bounds, each evaluated from its q in float64, less its rounding."""
        q, values = evaluate(tables.graph, trace.total("q"))
        bounds = values - float(tables.rounding)
        best = int(bounds.argmax())
        converged = trace.total("converged") > 0
        return Estimate(
            marginals=marginals(tables.graph, model, q[:, best]),
            log_z=float(bounds[best]),
            log_z_kind="lower",
            diagnostics={
                "residual": float(trace.total("residual")[best]),
                "iterations": float(trace.total("iterations")[best]),
                "converged_restarts": float(converged.sum()),
                "worst_restart": float(bounds.min()),
            },
            doubts=() if converged[best] else ("not converged",),
        )


def evaluate(graph: Graph, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """q (S, C), normalised in float64, and its bounds (C,); -inf where q has weight on a hard zero.

    Where tables have zeros, probabilities below `NONE` become 0, so that no product of them underflows to 0 unseen.
    """
    cards = graph.cardinalities
    first = np.cumsum(cards) - cards
    if any(np.isneginf(group.log_tables).any() for group in graph.groups):
        q = np.where(q < NONE, 0.0, q)
    if len(first):
        q = q / np.repeat(np.add.reduceat(q, first, axis=0), cards, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = float(graph.constant) - np.where(q > 0, q * np.log(q), 0.0).sum(axis=0)
    bounds = bounds + graph.theta @ q[np.arange(len(graph.theta)) + graph.variable + 1]
    for group in factors(graph):
        count, *sizes = group.log_tables.shape
        joint = np.ones((count, *[1] * len(sizes), q.shape[1]))
        for slot, size in enumerate(sizes):
            states = (first[graph.variable[group.rows[slot]]])[:, None] + np.arange(size)
            shape = (count, *(size if s == slot else 1 for s in range(len(sizes))), q.shape[1])
            joint = joint * q[states].reshape(shape)
        log = group.log_tables[..., None]
        with np.errstate(invalid="ignore"):
            bounds = bounds + np.where(joint > 0, joint * log, 0.0).sum(axis=tuple(range(joint.ndim - 1)))
    return q, bounds


def start_probabilities(t: Tables, start: Array, xp: Namespace) -> Array:
    """(n, K, C) q of the first chain uniform, of the others leaning to their starts (N, C); allowed states in turn
    where factors have zeros."""
    first = xp.ones_like(start[:1, :])
    states = t.ascent.fields.shape[1]
    if t.feasible.shape[1]:
        chosen = xp.take(t.feasible, xp.arange(start.shape[1]) % t.feasible.shape[1], axis=1)
        at = chosen[:, None, :] == xp.arange(states)[None, :, None]
        return xp.where(at, xp.ones_like(first), xp.zeros_like(first))
    leans = xp.take(start, t.graph.source, axis=0) == xp.astype(t.graph.aim, start.dtype)[:, None]
    signs = xp.where(leans, first, -first)
    signs = xp.where(xp.arange(start.shape[1])[None, :] == 0, xp.zeros_like(signs), START * signs)
    lean = take(xp, xp.concat([signs, xp.zeros_like(first)], axis=0), t.ascent.rows)
    return _softmax(xp.where(t.ascent.fields[:, :, None] > -xp.inf, lean, -xp.inf), xp)


def _softmax(fields: Array, xp: Namespace) -> Array:
    """(n, K, C) normalised over K."""
    weights = xp.exp(fields - xp.max(fields, axis=1, keepdims=True))
    return weights / xp.sum(weights, axis=1, keepdims=True)


class _Ascent(ArrayOperations):
    """Sweeps over a backend's arrays: q (n, K, C), 0 beyond a variable's own states."""

    def sweep(self, t: Ascent, q: Array) -> Array:
        """Colour by colour."""
        xp = self._xp

        def update(b: Index, q: Array) -> Array:
            variables = self._backend.take(t.chunks, b)
            fields, forbidden = self._fields(t, variables, q)
            fresh = _softmax(xp.where(forbidden > 0, -xp.inf, fields), xp)
            return self._backend.update(q, variables, fresh, donate=True)

        # A model without variables has no rows for the loop to index.
        if not t.chunks.shape[0]:
            return q
        # A copy, since the loop writes into it.
        swept: Array = self._backend.fori_loop(0, t.chunks.shape[0], update, q * 1.0)
        return swept

    def _fields(self, t: Ascent, variables: Array, q: Array) -> tuple[Array, Array]:
        """(w, K, C) E[log p | x_v] up to a constant, and the expected number of hard zeros."""
        xp = self._xp
        width = t.fields.shape[1]
        fields = xp.take(t.fields, variables, axis=0)[:, :, None] + xp.zeros_like(q[:1, ...])
        forbidden = xp.zeros_like(fields)
        if isinstance(t.neighbours, Neighbours):
            near = self._entries(t.neighbours, variables)
            ones = self._backend.take(q[:, 1, :], self._backend.take(t.neighbours.others, near))
            pull = xp.sum(self._backend.take(t.neighbours.weights, near)[..., None] * ones, axis=1)
            fields = fields + self._pad_states(xp.stack([xp.zeros_like(pull), pull], axis=1), width)
        for entries in t.entries:
            near = self._entries(entries, variables)
            fields = fields + self._pad_states(self._expected(entries, entries.tables, near, q), width)
            if not isinstance(entries.zeros, tuple):
                forbidden = forbidden + self._pad_states(self._expected(entries, entries.zeros, near, q), width)
        return fields, forbidden

    def _entries(self, of: Neighbours | Entries, variables: Array) -> Array:
        """(w, D) entries of some variables, the last entry of the table where there are fewer."""
        xp = self._xp
        first, degree = xp.take(of.start, variables, axis=0), xp.take(of.degree, variables, axis=0)
        is_entry = of.window[None, :] < degree[:, None]
        return xp.where(is_entry, first[:, None] + of.window[None, :], of.others.shape[-1] - 1)

    def _expected(self, entries: Entries, table: Array, near: Array, q: Array) -> Array:
        """(w, K, C) Σ over entries of the expectation of a table, given the state on its first axis."""
        xp = self._xp
        # Axes of the gathered entries: (w, D, K, K_1, …, K_d, 1).
        values = self._backend.take(table, near)[..., None]
        for axis in range(entries.others.shape[0], 0, -1):
            size = table.shape[axis + 1]
            weights = self._backend.take(q, self._backend.take(entries.others[axis - 1, :], near))[:, :, :size, :]
            shape = (*near.shape, *[1] * axis, size, q.shape[-1])
            values = xp.sum(values * xp.reshape(weights, shape), axis=axis + 2)
        return xp.sum(values, axis=1)

    def _pad_states(self, fields: Array, width: int) -> Array:
        """(w, K, C) to (w, width, C), with zeros."""
        missing = width - fields.shape[1]
        if not missing:
            return fields
        return self._xp.concat([fields, *[self._xp.zeros_like(fields[:, :1, :])] * missing], axis=1)

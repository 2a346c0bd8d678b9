"""The rounds of tree-reweighted sum-product, see `trw`: messages and edge probabilities in turn."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from spinbench.api import Array, Backend, Kernel, Model, States, map_arrays
from spinbench.mathematics.graphs.message_layouts import FloatArray, Graph, Incidence
from spinbench.mathematics.rounding import work_of
from spinbench.methods.messages.arrays import MessagePassing, normalise, state_log_weights
from spinbench.methods.messages.spanning_trees import Forest, covering_forests, forest_log_z, maximum_forest
from spinbench.methods.messages.trw import Tables, TreeReweighted

Messages = TypeVar("Messages")
Prepared = TypeVar("Prepared")

# Tolerance of the messages while edge probabilities still change: the bound holds for any messages and is computed from
# the current ones.
ROUGH = 1e-3
# Limits of the iterations in every round but the last: as many as make `UPDATES` message updates, between the two
# numbers of sweeps. On large models another round with a new forest gains more than further iterations.
MAX_SWEEPS, MIN_SWEEPS, UPDATES = 100, 8, 2**21
# Default damping of the flooding schedule, in which all messages change at once: undamped messages oscillate on loops.
FLOODING = 0.3
# Edge probabilities count as optimal if no forest lowers the bound by more than this, to first order.
SMALL_GAP = 1e-6


@dataclass
class TRWState(Generic[Messages, Prepared]):
    """One run; consumed by `advance`.

    Attributes:
        messages: (M,) float64 or of the backend.
        forests, weights: T spanning forests and their weights λ.
        rho: (E,) edge appearance probabilities.
        rounds, sweeps: rounds so far, and iterations since the last one.
        final: whether the edge probabilities stay as they are.
        iterations: of all rounds.
        residual: largest change of a message in the last iteration.
        gap: by how much a better forest could lower the bound, to first order.
        log_z: the smallest bound so far.
        converged: whether the messages have, in the end.
    """

    messages: Messages
    forests: list[Forest]
    weights: list[float]
    rho: FloatArray
    rounds: int = 0
    sweeps: int = 0
    final: bool = False
    iterations: int = 0
    residual: float = 0.0
    gap: float = 0.0
    log_z: float = np.inf
    converged: bool = False
    prepared: Prepared | Any = field(default=None, repr=False)


class TRWKernel(Kernel[Tables, TRWState[Messages, Prepared]], Generic[Messages, Prepared]):
    """The rounds of `TreeReweighted` on the host; subclasses compute the messages."""

    def __init__(self, method: TreeReweighted, backend: Backend, model: Model, tables: Tables) -> None:
        self._method = method
        self._backend = backend
        self._tables = tables
        self._tolerance = method.smallest_change(backend.precision)
        entries = max(len(tables.incidence.target), 1)
        self._at_stake = work_of(model)
        self._sweeps = min(max(UPDATES // entries, MIN_SWEEPS), MAX_SWEEPS)
        self._cover: list[Forest] | None = None

    @abstractmethod
    def _first_messages(self) -> Messages:
        """(M,) zeros."""

    @abstractmethod
    def _prepare(self, rho: FloatArray) -> Prepared:
        """Whatever `_sweep` needs of ρ (E,)."""

    @abstractmethod
    def _sweep(self, prepared: Prepared, messages: Messages) -> tuple[Messages, float]:
        """One iteration: messages, and their largest change."""

    @abstractmethod
    def _host(self, messages: Messages) -> FloatArray:
        """(M,) float64."""

    def _forest_log_z(self, forests: list[Forest], nodes: FloatArray, tables: FloatArray) -> FloatArray:
        return forest_log_z(self._tables.edges, forests, nodes, tables)

    def init(self, seed: int, start: States) -> TRWState[Messages, Prepared]:
        if self._cover is None:
            self._cover = covering_forests(len(self._tables.nodes), self._tables.edges)
        forests = list(self._cover)
        weights = [1.0 / len(forests)] * len(forests)
        state: TRWState[Messages, Prepared] = TRWState(self._first_messages(), forests, weights, np.zeros(0))
        self._set_weights(state)
        # A single forest contains all edges: the graph is a forest, and the bound is exact.
        state.final = len(forests) == 1 or not self._method.rounds
        return state

    def advance(
        self, state: TRWState[Messages, Prepared], steps: int
    ) -> tuple[TRWState[Messages, Prepared], dict[str, np.ndarray]]:
        for _ in range(steps):
            if state.converged:
                break
            self._step(state)
        names = ("log_z", "residual", "iterations", "rounds", "gap", "converged")
        statistics = {name: np.array([float(getattr(state, name))]) for name in names}
        totals = self._totals(state.rho, self._host(state.messages))
        beliefs = normalise(*state_log_weights(self._tables.graph, totals))[0]
        return state, {**statistics, "beliefs": beliefs}

    def _step(self, state: TRWState[Messages, Prepared]) -> None:
        """One iteration; the bound where a round ends, and as often as takes no more time than the iterations."""
        state.messages, state.residual = self._sweep(state.prepared, state.messages)
        state.iterations += 1
        state.sweeps += 1
        state.converged = state.final and state.residual <= self._tolerance
        ended = not state.final and (state.residual <= max(ROUGH, self._tolerance) or state.sweeps >= self._sweeps)
        if state.converged or ended or state.iterations == 1 or state.sweeps % len(state.forests) == 0:
            messages = self._host(state.messages)
            state.log_z = min(state.log_z, self._bound(state, messages))
            if ended:
                self._next_round(state, messages)

    def _set_weights(self, state: TRWState[Messages, Prepared]) -> None:
        rho = np.zeros(len(self._tables.edges))
        for weight, forest in zip(state.weights, state.forests, strict=True):
            rho[forest.edges] += weight
        state.rho = rho
        state.prepared = self._prepare(rho)

    def _next_round(self, state: TRWState[Messages, Prepared], messages: FloatArray) -> None:
        """One step of conditional gradient over the spanning tree polytope."""
        t = self._tables
        information = self._information(state.rho, messages)
        forest = maximum_forest(len(t.nodes), t.edges, information)
        state.gap = float(information[forest.edges].sum() - state.rho @ information)
        state.sweeps = 0
        state.rounds += 1
        state.final = state.gap <= SMALL_GAP or state.rounds == self._method.rounds
        if state.gap <= SMALL_GAP:
            return
        # Steps 2 / (t + 2) of the conditional gradient (Frank and Wolfe) with t from 2 on: the first step, 1, would
        # drop the forests that cover all edges and leave edges with ρ = 0.
        share = 2.0 / (state.rounds + 4)
        state.weights = [(1 - share) * weight for weight in state.weights] + [share]
        state.forests.append(forest)
        self._set_weights(state)

    def _totals(self, rho: FloatArray, messages: FloatArray) -> FloatArray:
        """(R, 1) θ + Σ ρ m, by rows."""
        counted = (messages * self._entry_weights(rho))[:, None]
        return np.asarray(MessagePassing(np).totals(self._tables.graph, self._tables.incidence, counted))

    def _entry_weights(self, rho: FloatArray) -> FloatArray:
        """(M,) ρ of the edge of each message entry."""
        weights = np.zeros(len(self._tables.incidence.target) + 1)
        weights[self._tables.messages] = rho[None, :, None]
        return weights[:-1]

    def _reparametrise(self, rho: FloatArray, messages: FloatArray) -> tuple[FloatArray, FloatArray]:
        """θ̃ of the nodes (n, K) and edges (E, K, K)."""
        t = self._tables
        first, second = np.append(messages, 0.0)[t.messages]
        tables = t.log_tables / rho[:, None, None] - first[:, :, None] - second[:, None, :]
        nodes = np.where(t.nodes > -np.inf, 0.0, -np.inf)
        variable = t.graph.variable
        states = np.arange(len(t.graph.theta)) - t.graph.first[variable] + 1
        nodes[variable, states] = self._totals(rho, messages)[:, 0]
        return nodes, tables

    def _bound(self, state: TRWState[Messages, Prepared], messages: FloatArray) -> float:
        """In float64, plus its rounding: each forest is one more term of λ and ρ, and messages count ρ times."""
        log_z = self._forest_log_z(state.forests, *self._reparametrise(state.rho, messages))
        work = self._at_stake._replace(steps=self._at_stake.steps + len(state.forests))
        counted = np.abs(messages * self._entry_weights(state.rho)).sum()
        value = float(self._tables.graph.constant) + float(np.dot(state.weights, log_z))
        return value + work.allowance(4.0 * float(counted))

    def _information(self, rho: FloatArray, messages: FloatArray) -> FloatArray:
        """(E,) mutual information of the edges' pseudo-marginals ∝ exp(θ̃_i + θ̃_e + θ̃_j)."""
        nodes, tables = self._reparametrise(rho, messages)
        i, j = self._tables.edges.T
        log = tables + nodes[i][:, :, None] + nodes[j][:, None, :]
        p = np.exp(log - log.max(axis=(1, 2), keepdims=True))
        p /= p.sum(axis=(1, 2), keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = np.log(p.sum(axis=2, keepdims=True)) + np.log(p.sum(axis=1, keepdims=True))
            return np.asarray(np.where(p > 0, p * (np.log(p) - apart), 0.0).sum(axis=(1, 2)))


class ArrayTRWKernel(TRWKernel[Array, tuple[Graph, Array]]):
    """Messages by flooding over the arrays of a backend."""

    def __init__(self, method: TreeReweighted, backend: Backend, model: Model, tables: Tables) -> None:
        super().__init__(method, backend, model, tables)
        self._incidence = map_arrays(backend.to_device, tables.incidence)
        self._damping = FLOODING if method.damping is None else method.damping
        self._passing = MessagePassing(backend.xp)
        self._compiled = backend.compile(self._flood)

    def _first_messages(self) -> Array:
        return self._backend.to_device(np.zeros((len(self._tables.incidence.target), 1)))

    def _host(self, messages: Array) -> FloatArray:
        return np.asarray(self._backend.to_host(messages), dtype=np.float64)[:, 0]

    def _prepare(self, rho: FloatArray) -> tuple[Graph, Array]:
        graph, edges = self._tables.graph, len(self._tables.graph.pairs.weights)
        scaled, start = [], edges
        for group in graph.groups:
            mine = rho[start : start + len(group.log_tables), None, None]
            scaled.append(group._replace(log_tables=group.log_tables / mine))
            start += len(mine)
        pairs = graph.pairs._replace(weights=graph.pairs.weights / rho[:edges])
        floor = graph.floor / rho.min(initial=1.0)
        graph = graph._replace(pairs=pairs, groups=tuple(scaled), floor=floor)
        prepared: tuple[Graph, Array] = map_arrays(self._backend.to_device, (graph, self._entry_weights(rho)[:, None]))
        return prepared

    def _sweep(self, prepared: tuple[Graph, Array], messages: Array) -> tuple[Array, float]:
        if not messages.shape[0]:
            return messages, 0.0
        messages, residual = self._compiled(*prepared, self._incidence, messages)
        return messages, float(self._backend.to_host(residual))

    def _flood(self, graph: Graph, weights: Array, layout: Incidence, messages: Array) -> tuple[Array, Array]:
        xp, d = self._backend.xp, self._damping
        new = self._passing.updated(graph, self._passing.totals(graph, layout, weights * messages), messages)
        residual = xp.max(xp.abs(new - messages) / xp.maximum(xp.abs(new), 1.0))
        return d * messages + (1 - d) * new, residual

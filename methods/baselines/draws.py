"""The generic program of independent draws of a proposal, with their weights: of `importance` and `rejection`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spinbench.api import Array, Backend, Key
from spinbench.mathematics.graphs.factor_tables import FactorTables
from spinbench.mathematics.graphs.table_layouts import Entries, table_sweep
from spinbench.methods.baselines.proposals import Forest
from spinbench.methods.baselines.weighing import state_pairs
from spinbench.methods.chain_program import IndependentSteps, TableProgram


class Layers(NamedTuple):
    """A forest by depth: L layers of at most w variables of at most K states, padded with the place N.

    Attributes:
        rows, parents: (L, w) int32 variables; N where there is no parent.
        passed: (L, w, K, K) Σ_{j <= k} q(x_v = j | parent), 2 from the last state on.
        logs: (L, w, K, K) log q.
    """

    rows: Array
    parents: Array
    passed: Array
    logs: Array


class Tables(NamedTuple):
    """What is planned.

    Attributes:
        layers: of the proposal.
        entries: of the model's factors.
        variables, states: (M,) int32, of which marginals are reported: state 1 of binary models, else all.
        sizes: (N,) states of the variables.
        bounds: (2,) of log weights, from below and above.
        constant: () what is added to log weights: the model's.
        tries: () int32, draws of a step.
    """

    layers: Layers
    entries: Entries
    variables: Array
    states: Array
    sizes: Array
    bounds: Array
    constant: Array
    tries: Array


class State(NamedTuple):
    """Of the last step. Attributes: x (N, C) int32 the last draws, or the first that were accepted; log_w, square (C,)
    log of the means of p* / q and of its square; kept (C,) 1 where a draw was accepted."""

    x: Array
    log_w: Array
    square: Array
    kept: Array


def draw_tables(model: FactorTables, law: Forest) -> Tables:
    """Of a model and a proposal for it."""
    variables, states = state_pairs(model.cardinalities)
    return Tables(
        layers=_layers(law),
        entries=table_sweep(model, "chromatic", single=False).entries,
        variables=variables,
        states=states,
        sizes=model.cardinalities.astype(np.float64),
        bounds=np.array(law.bounds),
        constant=np.array(model.log_constant),
        tries=np.array(1, dtype=np.int32),
    )


def _layers(law: Forest) -> Layers:
    n, most = len(law.order), max(table.shape[1] for table in law.logs)
    depth = dict[int, int]()
    for v in law.order:
        depth[v] = depth[law.parents[v]] + 1 if law.parents[v] >= 0 else 0
    deep = max(depth.values()) + 1
    members = [[v for v in law.order if depth[v] == layer] for layer in range(deep)]
    shape = deep, max(map(len, members))
    rows, parents = np.full((2, *shape), n, dtype=np.int32)
    passed, logs = np.full((*shape, most, most), 2.0), np.zeros((*shape, most, most))
    for layer, part in enumerate(members):
        for place, v in enumerate(part):
            table = law.logs[v]
            rows[layer, place] = v
            parents[layer, place] = law.parents[v] if law.parents[v] >= 0 else n
            above, own = table.shape
            logs[layer, place, :above, :own] = table
            passed[layer, place, :above, : own - 1] = np.cumsum(np.exp(table), axis=1)[:, :-1]
    return Layers(rows, parents, passed, logs)


class ForestDraws:
    """Independent draws of a proposal."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self._xp = backend, backend.xp

    def draw(self, layers: Layers, u: Array, x: Array) -> tuple[Array, Array]:
        """(x (N + 1, C), log q (C,)): layer by layer; the last row is that of padding."""
        xp, backend = self._xp, self._backend
        wide, most = layers.rows.shape[1], layers.logs.shape[3]
        first = xp.arange(wide, dtype=xp.int32)[:, None] * most

        def layer(i: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            x, log_q = carry
            rows, parents = backend.take(layers.rows, i), backend.take(layers.parents, i)
            roots = (parents == x.shape[0] - 1)[:, None]
            above = first + xp.where(roots, xp.zeros_like(first), backend.take(x, parents))
            passed = backend.take(xp.reshape(backend.take(layers.passed, i), (wide * most, most)), above)
            drawn = xp.astype(xp.count_nonzero(backend.take(u, rows)[:, :, None] >= passed, axis=2), xp.int32)
            logs = xp.reshape(backend.take(layers.logs, i), (wide * most * most,))
            log_q = log_q + xp.sum(backend.take(logs, above * most + drawn), axis=0)
            return backend.update(x, rows, drawn), log_q

        found: tuple[Array, Array] = backend.fori_loop(0, layers.rows.shape[0], layer, (x, xp.zeros_like(u[0, :])))
        return found


class Draws(IndependentSteps, TableProgram):
    """Init, step and observe.

    Args:
        backend: the backend.
        rejects: whether draws are accepted with the probability that their weight has of the largest.
    """

    def __init__(self, backend: Backend, *, rejects: bool) -> None:
        super().__init__(backend)
        self._rejects = rejects
        self._forest: ForestDraws = backend.operations(ForestDraws)

    def init(self, key: Key, t: Tables, start: Array) -> State:
        """Of no draw."""
        x, none = self._xp.zeros_like(start), self._xp.zeros_like(start[0, :])
        return State(self._xp.astype(x, self._xp.int32), none, none + 0.0, none + 0.0)

    def step(self, key: Key, t: Tables, state: State) -> State:
        """As many draws of every chain as `Tables.tries` says."""
        backend = self._backend
        none = self._xp.zeros_like(state.log_w)
        begun = State(state.x, none - self._xp.inf, none - self._xp.inf, none)

        def try_once(i: Any, state: State) -> State:
            return self._tried(backend.fold_in(key, i), t, state)

        found: State = backend.fori_loop(0, t.tries, try_once, begun)
        tries = self._xp.log(none + self._xp.asarray(t.tries, dtype=backend.real))
        return found._replace(log_w=found.log_w - tries, square=found.square - tries)

    def _tried(self, key: Key, t: Tables, state: State) -> State:
        xp, backend = self._xp, self._backend
        n, chains = state.x.shape
        u = backend.uniform(backend.fold_in(key, 0), (n + 1, chains))
        x, log_q = self._forest.draw(t.layers, u, xp.concat([state.x, state.x[:1, :]], axis=0))
        x = x[:n, :]
        log_w = self._bath.log_weights(t.entries, x) - log_q
        kept = state.kept
        if self._rejects:
            v = backend.uniform(backend.fold_in(key, 1), (chains,))
            first = (kept == 0) & (v < xp.exp(log_w - t.bounds[1, ...]))
            x = xp.where(first, x, state.x)
            kept = xp.where(first, kept + 1.0, kept)
        return State(x, xp.logaddexp(state.log_w, log_w), xp.logaddexp(state.square, 2.0 * log_w), kept)

    def observe(self, t: Tables, state: State) -> dict[str, Array]:
        """The statistics of `Importance.reductions` or of `Rejection.reductions`."""
        xp = self._xp
        hit = self._backend.take(state.x, t.variables) == t.states[:, None]
        seen = {"z": state.log_w, "square": state.square}
        if self._rejects:
            accepted = xp.where(hit, state.kept, 0.0 * state.kept)
            return {**seen, "s": accepted, "kept": state.kept}
        return {**seen, "p": xp.where(hit, state.log_w, 0.0 * state.kept - xp.inf)}

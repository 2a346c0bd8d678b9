"""The generic program of independent draws of a proposal, with their weights: of `importance` and `rejection`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.api import Array, Backend, Index, Key
from spinbench.foundation.arithmetic import make_operations
from spinbench.mathematics.graphs.factor_tables import FactorTables
from spinbench.mathematics.graphs.table_layouts import Entries, table_sweep
from spinbench.methods.baselines.proposals import ForestProposal
from spinbench.methods.baselines.weight_moments import bound_moments
from spinbench.methods.chain_program import ArrayOperations, IndependentSteps, TableProgram
from spinbench.methods.weighted_means import state_pairs


class Layers(NamedTuple):
    """A forest by depth: L layers of at most w variables of at most K states, padded with the place N.

    Attributes:
        rows, parents: (L, w) int32 variables; N where there is no parent.
        cumulative: (L, w, K, K) Σ_{j <= k} q(x_v = j | parent), 2 from the last state on.
        logs: (L, w, K, K) log q.
    """

    rows: Array
    parents: Array
    cumulative: Array
    logs: Array


class Tables(NamedTuple):
    """What is planned.

    Attributes:
        layers: of the proposal.
        entries: of the model's factors.
        variables, states: (M,) int32, of which marginals are reported: state 1 of binary models, else all.
        sizes: (N,) states of the variables.
        bounds: (2,) of log weights, from below and above.
        moments: (K,) of log E w^k from above, of each of `weight_moments.ORDERS`.
        constant: () what is added to log weights: the model's.
        tries: () int32, draws of a step.
    """

    layers: Layers
    entries: Entries
    variables: Array
    states: Array
    sizes: Array
    bounds: Array
    moments: Array
    constant: Array
    tries: Array


class State(NamedTuple):
    """Of the last step. Attributes: x (N, C) int32 the last draws, or the first that were accepted; log_w, square (C,)
    log of the means of p* / q and of its square; accepted (C,) 1 where a draw was accepted."""

    x: Array
    log_w: Array
    square: Array
    accepted: Array


def build_draw_tables(model: FactorTables, proposal: ForestProposal) -> Tables:
    """Of a model and a proposal for it."""
    variables, states = state_pairs(model.cardinalities)
    return Tables(
        layers=_build_layers(proposal),
        entries=table_sweep(model, "chromatic", single=False).entries,
        variables=variables,
        states=states,
        sizes=model.cardinalities.astype(np.float64),
        bounds=np.array(proposal.bounds),
        moments=bound_moments(model, proposal),
        constant=np.array(model.log_constant),
        tries=np.array(1, dtype=np.int32),
    )


def _build_layers(proposal: ForestProposal) -> Layers:
    n, max_states = len(proposal.order), max(table.shape[1] for table in proposal.logs)
    depth = dict[int, int]()
    for v in proposal.order:
        # A variable depends only on variables of lesser depth, so that all variables of one depth are drawn together.
        depth[v] = depth.get(proposal.parents[v], -1) + 1
    num_layers = max(depth.values()) + 1
    members = [[v for v in proposal.order if depth[v] == layer] for layer in range(num_layers)]
    shape = num_layers, max(map(len, members))
    rows, parents = np.full((2, *shape), n, dtype=np.int32)
    # Padding with 2, which is above every uniform number u: the count of cumulated probabilities below u then never
    # exceeds the number of states.
    cumulative, logs = np.full((*shape, max_states, max_states), 2.0), np.zeros((*shape, max_states, max_states))
    for layer, part in enumerate(members):
        for place, v in enumerate(part):
            table = proposal.logs[v]
            rows[layer, place] = v
            parents[layer, place] = proposal.parents[v] if proposal.parents[v] >= 0 else n
            num_parent_states, num_states = table.shape
            logs[layer, place, :num_parent_states, :num_states] = table
            cumulative[layer, place, :num_parent_states, : num_states - 1] = np.cumsum(np.exp(table), axis=1)[:, :-1]
    return Layers(rows, parents, cumulative, logs)


class ForestDraws(ArrayOperations):
    """Independent draws of a proposal."""

    def draw_states(self, layers: Layers, u: Array, x: Array) -> tuple[Array, Array]:
        """(x (N + 1, C), log q (C,)): layer by layer; the last row is that of padding."""
        xp, backend = self._xp, self._backend
        max_width, max_states = layers.rows.shape[1], layers.logs.shape[3]
        first = xp.arange(max_width, dtype=xp.int32)[:, None] * max_states

        def layer(i: Index, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            x, log_q = carry
            rows, parents = backend.take(layers.rows, i), backend.take(layers.parents, i)
            roots = (parents == x.shape[0] - 1)[:, None]
            above = first + xp.where(roots, xp.zeros_like(first), backend.take(x, parents))
            cumulative = backend.take(
                xp.reshape(backend.take(layers.cumulative, i), (max_width * max_states, max_states)), above
            )
            states = xp.astype(xp.count_nonzero(backend.take(u, rows)[:, :, None] >= cumulative, axis=2), xp.int32)
            logs = xp.reshape(backend.take(layers.logs, i), (max_width * max_states * max_states,))
            log_q = log_q + xp.sum(backend.take(logs, above * max_states + states), axis=0)
            return backend.update(x, rows, states), log_q

        drawn_and_log_q: tuple[Array, Array] = backend.fori_loop(
            0, layers.rows.shape[0], layer, (x, xp.zeros_like(u[0, :]))
        )
        return drawn_and_log_q


class DrawsProgram(IndependentSteps, TableProgram):
    """Init, step and observe.

    Args:
        backend: the backend.
        rejects: whether draws are accepted with the probability that their weight has of the largest.
    """

    def __init__(self, backend: Backend, *, rejects: bool) -> None:
        super().__init__(backend)
        self._rejects = rejects
        self._forest: ForestDraws = make_operations(backend, ForestDraws)

    def init(self, key: Key, t: Tables, start: Array) -> State:
        """Of no draw."""
        x, none = self._xp.zeros_like(start), self._xp.zeros_like(start[0, :])
        return State(self._xp.astype(x, self._xp.int32), none, none + 0.0, none + 0.0)

    def step(self, key: Key, t: Tables, state: State) -> State:
        """As many draws of every chain as `Tables.tries` says."""
        backend = self._backend
        none = self._xp.zeros_like(state.log_w)
        empty = State(state.x, none - self._xp.inf, none - self._xp.inf, none)
        totals: State = backend.fori_loop(
            0, t.tries, lambda i, state: self._try_draw(backend.fold_in(key, i), t, state), empty
        )
        tries = self._xp.log(none + self._xp.asarray(t.tries, dtype=backend.real))
        return totals._replace(log_w=totals.log_w - tries, square=totals.square - tries)

    def _try_draw(self, key: Key, t: Tables, state: State) -> State:
        xp, backend = self._xp, self._backend
        n, chains = state.x.shape
        u = backend.uniform(backend.fold_in(key, 0), (n + 1, chains))
        x, log_q = self._forest.draw_states(t.layers, u, xp.concat([state.x, state.x[:1, :]], axis=0))
        x = x[:n, :]
        log_w = self._bath.log_weights(t.entries, x) - log_q
        accepted = state.accepted
        if self._rejects:
            v = backend.uniform(backend.fold_in(key, 1), (chains,))
            is_first = (accepted == 0) & (v < xp.exp(log_w - t.bounds[1, ...]))
            x = xp.where(is_first, x, state.x)
            accepted = xp.where(is_first, accepted + 1.0, accepted)
        return State(x, xp.logaddexp(state.log_w, log_w), xp.logaddexp(state.square, 2.0 * log_w), accepted)

    def observe(self, t: Tables, state: State) -> dict[str, Array]:
        """The statistics of `Importance.reductions` or of `Rejection.reductions`."""
        xp = self._xp
        hit = self._backend.take(state.x, t.variables) == t.states[:, None]
        statistics = {"z": state.log_w, "square": state.square}
        if self._rejects:
            accepted_hits = xp.where(hit, state.accepted, 0.0 * state.accepted)
            return {**statistics, "s": accepted_hits, "kept": state.accepted}
        return {**statistics, "p": xp.where(hit, state.log_w, 0.0 * state.accepted - xp.inf)}

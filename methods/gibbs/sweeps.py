"""Sweeps over a backend's arrays, each chain at a β of its own, of pairwise models and of factor graphs.

Both classes have the same methods, so that a program of Gibbs sampling or of tempering is written once. Symbols as in
`gibbs`; p are conditional probabilities as of the variables' last updates, and where it is (), it stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from spinbench.api import Array, Backend, Index, Key
from spinbench.foundation.arithmetic import make_operations
from spinbench.mathematics.graphs.sweep_layouts import Scan, Sweep
from spinbench.mathematics.graphs.table_layouts import TableSweep
from spinbench.mathematics.heat_bath.table_updates import TableBath
from spinbench.mathematics.heat_bath.tiles import in_tiles
from spinbench.mathematics.heat_bath.updates import HeatBath, spans
from spinbench.methods.chain_program import ArrayOperations

if TYPE_CHECKING:
    from spinbench.methods.gibbs.graph_plan import GraphTables


class Tables(NamedTuple):
    """What `Gibbs.plan` prepares for a pairwise model; arrays are in row order.

    Attributes:
        order: (N,) int32 or int64, variable of each row.
        sweep: the sweep; also the kernel T of Chib's estimator.
        single: single variables in the order of single updates; None where only sweeps are made.
        mode: (N,) s*, 0 and 1.
        mode_log_weight: () log p*(s*), the model's constant included.
        log_t_constant: () the part of log T(s* <- s) that does not depend on s (blocks that come last).
    """

    order: Array
    sweep: Sweep | Scan
    single: Scan | None
    mode: Array
    mode_log_weight: Array
    log_t_constant: Array


class SweptPairs(Protocol):
    """Tables of a pairwise model whose rows are swept."""

    @property
    def order(self) -> Array:
        """(N,) variable of each row."""

    @property
    def sweep(self) -> Sweep | Scan:
        """The sweep."""


class SweptGraph(Protocol):
    """Tables of a factor graph whose variables are swept."""

    @property
    def sweep(self) -> TableSweep:
        """The sweep."""

    @property
    def blank(self) -> Array:
        """(R + 1,) zeros."""


class PairSweeps(ArrayOperations):
    """States s (N, C) of 0 and 1 in the backend's real type, rows in the tables' order; p (N, C) of s_i = 1."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self._bath = HeatBath(backend)

    def arrange_states(self, t: SweptPairs, start: Array) -> Array:
        """From states of the variables (N, C)."""
        return self._xp.take(start, t.order, axis=0)

    def states_by_variable(self, t: SweptPairs, s: Array) -> Array:
        """(N, C), variable by variable."""
        return self._xp.take(s, self._xp.argsort(t.order), axis=0)

    def initial_conditionals(self, t: SweptPairs, s: Array) -> Array:
        """p before any sweep."""
        return self._xp.zeros_like(s)

    def statistic(self, t: Tables, s: Array, p: Array) -> Array:
        """(N, C) what is summed: p, or states where it is ()."""
        return s if isinstance(p, tuple) else p

    def count_single_updates(self, t: Tables) -> int:
        """Single updates of a sweep."""
        return 0 if t.single is None else t.single.rows.shape[0]

    def sweep_forward(
        self, key: Key, t: SweptPairs, s: Array, p: Array, beta: Array | None = None
    ) -> tuple[Array, Array]:
        """(s, p) after a sweep at beta (C,), or at 1; both are given up."""
        u = self._backend.uniform(key, tuple(s.shape))
        if isinstance(t.sweep, Scan):
            return self._bath.sweep_chunks(t.sweep, s, p, u, backward=False, beta=beta)
        s, blocks = self._bath.sweep_blocks(t.sweep, s, u, beta)
        return s, p if isinstance(p, tuple) else self._xp.concat(blocks, axis=0)

    def sweep_backward(self, key: Key, t: Tables, s: Array) -> Array:
        """s after a sweep in reverse order."""
        return self._bath.sweep(key, t.sweep, s, backward=True)

    def conditionals(self, t: Tables, s: Array, p: Array) -> Array:
        """p of the states as they are."""
        return self._bath.conditionals(t.sweep, s)

    def update_next_variable(self, t: Tables, position: Index, s: Array, p: Array, u: Array) -> tuple[Array, Array]:
        """(s, p) after single update number `position`; u (C,)."""
        assert t.single is not None
        return self._bath.update_chunk(t.single, position, s, p, u[None, :])

    def update_random_variable(self, t: Tables, s: Array, p: Array, where: Array, u: Array) -> tuple[Array, Array]:
        """(s, p) after an update of one variable of each chain, that which `where` (C,), uniform, chooses; u (C,)."""
        assert t.single is not None
        return self._bath.update_anywhere(t.single, s, p, where, u)

    def log_transition_to_mode(self, t: Tables, s: Array) -> Array:
        """(C,) log T(s* <- s): of a sweep in which every draw is forced to s*."""
        sweep, log_probability = t.sweep, self._bath.draws.log_probability
        total = self._xp.zeros_like(s[0, :])
        if isinstance(sweep, Sweep):
            return self._sum_block_log_transitions(t, sweep, s, total + t.log_t_constant)
        if in_tiles(sweep):
            return self._bath.tiles.sum_forced_fields(sweep, s, t.mode, log_probability, total)

        def body(b: Index, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            mixed, total = carry
            rows = self._backend.take(sweep.rows, b)
            x = self._bath.fields.of_chunk(sweep, rows, mixed)
            target = self._backend.take(t.mode, rows)[:, None]
            parts = log_probability(x, target)
            mixed = self._backend.update(mixed, rows, self._xp.zeros_like(x) + target, donate=True)
            return mixed, total + self._xp.sum(self._backend.take(sweep.valid, b)[:, None] * parts, axis=0)

        return self._backend.fori_loop(0, sweep.rows.shape[0], body, (s + 0.0, total))[1]

    def _sum_block_log_transitions(self, t: Tables, sweep: Sweep, s: Array, total: Array) -> Array:
        """The last blocks do not depend on s."""
        for low, high, block in spans(sweep)[: len(sweep.first + sweep.middle)]:
            parts = self._bath.draws.log_probability(self._bath.fields.of_block(block, s, low), t.mode[low:high, None])
            total = total + self._xp.sum(parts, axis=0)
            # Without middle blocks no term of log T depends on the states of the first blocks.
            if sweep.middle:
                forced = self._xp.zeros_like(s[low:high, :]) + t.mode[low:high, None]
                s = self._backend.update(s, slice(low, high), forced)
        return total

    def slope(self, t: SweptPairs, s: Array) -> Array:
        """(C,) a·s + ½ sᵀWs, which is d log p*^β / dβ."""
        xp, sweep, fields = self._xp, t.sweep, self._bath.fields
        if isinstance(sweep, Sweep):
            slope_sum = xp.zeros_like(s[0, :])
            for low, high, block in spans(sweep):
                field_sums = fields.of_block(block, s, low) + block.biases[:, None]
                slope_sum = slope_sum + xp.sum(s[low:high, :] * field_sums, axis=0)
            return slope_sum / 2

        def body(b: Array, total: Array) -> Array:
            rows = self._backend.take(sweep.rows, b)
            field_sums = fields.of_chunk(sweep, rows, s) + self._backend.take(sweep.biases, rows)[:, None]
            states = self._backend.take(sweep.valid, b)[:, None] * self._backend.take(s, rows)
            return total + xp.sum(states * field_sums, axis=0)

        twice: Array = self._backend.fori_loop(0, sweep.rows.shape[0], body, xp.zeros_like(s[0, :]))
        return twice / 2


class GraphSweeps(ArrayOperations):
    """States x (N, C) int32; p (R + 1, C) as of `marginal_rows`, with a last row that means nothing.

    Args:
        backend: the backend.
        bath: makes the steps; by default of heat-bath updates.
    """

    def __init__(self, backend: Backend, bath: TableBath | None = None) -> None:
        super().__init__(backend)
        self._bath: TableBath = bath or make_operations(backend, TableBath)

    def arrange_states(self, t: SweptGraph, start: Array) -> Array:
        """From states of the variables (N, C)."""
        return self._xp.astype(start, self._xp.int32)

    def states_by_variable(self, t: SweptGraph, x: Array) -> Array:
        """(N, C)."""
        return x

    def initial_conditionals(self, t: SweptGraph, x: Array) -> Array:
        """p before any sweep."""
        return t.blank[:, None] + self._xp.zeros((1, x.shape[1]), dtype=self._backend.real)

    def statistic(self, t: GraphTables, x: Array, p: Array) -> Array:
        """(R, C) what is summed: p, or 1 where a variable is in the state that is reported, else 0."""
        if not isinstance(p, tuple):
            return p[:-1, :]
        in_state = self._backend.take(x, t.variables) == t.states[:, None]
        return self._xp.astype(in_state, self._backend.real)

    def count_single_updates(self, t: SweptGraph) -> int:
        """Single updates of a sweep."""
        return 0 if t.sweep.single is None else t.sweep.single.rows.shape[0]

    def sweep_forward(
        self, key: Key, t: SweptGraph, x: Array, p: Array, beta: Array | None = None
    ) -> tuple[Array, Array]:
        """(x, p) after a sweep at beta (C,), or at 1; both are given up."""
        if beta is None:
            beta = self._unit_betas(x)
        return self._bath.sweep_and_conditionals(key, t.sweep, x, p, beta)

    def sweep_backward(self, key: Key, t: SweptGraph, x: Array) -> Array:
        """x after a sweep in reverse order."""
        return self._bath.sweep(key, t.sweep, x, self._unit_betas(x), backward=True)

    def conditionals(self, t: SweptGraph, x: Array, p: Array) -> Array:
        """p of the states as they are."""
        return self._bath.conditionals(t.sweep, x, p)

    def update_next_variable(self, t: SweptGraph, position: Index, x: Array, p: Array, u: Array) -> tuple[Array, Array]:
        """(x, p) after single update number `position`; u (C,)."""
        return self._bath.update_chunk(t.sweep, position, x, p, u[None, :])

    def update_random_variable(self, t: SweptGraph, x: Array, p: Array, where: Array, u: Array) -> tuple[Array, Array]:
        """(x, p) after an update of one variable of each chain, that which `where` (C,), uniform, chooses; u (C,)."""
        return self._bath.update_anywhere(t.sweep, x, p, where, u)

    def log_transition_to_mode(self, t: GraphTables, x: Array) -> Array:
        """(C,) log T(s* <- x): of a sweep in which every draw is forced to s*."""
        return self._bath.log_transition(t.sweep, x, t.mode)

    def slope(self, t: SweptGraph, x: Array) -> Array:
        """(C,) the sums of the factors' log entries, with soft zeros, which are d log p*^β / dβ."""
        return self._bath.log_weights(t.sweep.entries, x, floored=True)

    def _unit_betas(self, x: Array) -> Array:
        """(C,)."""
        return self._xp.ones(x.shape[1:], dtype=self._backend.real)

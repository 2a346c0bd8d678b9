"""Bucket tree (variable) elimination in log space, with marginals of all variables and exact samples.

Dechter, "Bucket elimination: a unifying framework for reasoning" (1999). Eliminating v multiplies the tables
that hold v into one over its clique (v, S) and sums v out. What is kept is the conditional p(x_v | x_S), so the
way back needs no logarithms and no division: p(x_v, x_S) = p(x_v | x_S) p(x_S), with p(x_S) from the bucket that
the message went to, and the same tables draw samples in the reverse order.

`Elimination` is what eliminations in NumPy and in compiled code share: the order, and what it says about their cost.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Iterator
from typing import ClassVar

import numpy as np

from spinbench.reference.elimination.products import sum_axes
from spinbench.reference.elimination.slices import slice_elimination
from spinbench.reference.network import FloatArray, IntArray, Scope
from spinbench.reference.orders.order import HOPELESS, Order, pairs_of
from spinbench.reference.orders.plan import separators
from spinbench.reference.problem import Problem
from spinbench.reference.solver import Solver, ZeroWeightError, draw_states
from spinbench.reference.sparse.tree import SparseTree, has_zeros


class Elimination(Solver):
    """Elimination of any discrete model along the problem's order.

    Attributes:
        entry_seconds, message_seconds, variable_seconds: of an entry of the cliques' tables, of an entry of the
            messages, and of a variable, with marginals. They are fitted on cores that other processes keep busy, too:
            on quiet ones they are up to a third high.
        log_z_share: of that, which log Z alone takes.
        value_seconds: of an entry of the model's tables, which some eliminations copy and make plain weights of.
        planned: whether the order is within reach, so that memory is that of its plan.
        room: large arrays by name, which one slice after another works in; new pages take longer than what is done
            with them.
    """

    name = "bucket_tree"
    width: int
    entry_seconds: ClassVar[float]
    message_seconds: ClassVar[float]
    variable_seconds: ClassVar[float]
    log_z_share: ClassVar[float]
    value_seconds: ClassVar[float] = 4e-8

    def __init__(self, problem: Problem, order: Order) -> None:
        self.problem = problem
        self.order = order
        self.width = order.width
        self.complete = order.complete
        self.planned = order.complete and order.log2_total < HOPELESS
        self.room: dict[str, FloatArray] | None = None
        if self.planned:
            self._plan()
        self.seconds = self.predict_seconds(marginals=True)

    @abstractmethod
    def _plan(self) -> None:
        """What `_memory` and `solve` need."""

    def empty(self, name: str, size: int) -> FloatArray:
        """An array, of `room` where there is one, with whatever it holds."""
        if self.room is None:
            return np.empty(size)
        if name not in self.room or self.room[name].size < size:
            self.room[name] = np.empty(size)
        return self.room[name][:size]

    @classmethod
    def build(cls, problem: Problem) -> Elimination:
        """Applies to every problem; an order that is out of reach shows in `memory`."""
        return cls(problem, problem.order)

    def predict_seconds(self, *, marginals: bool) -> float:
        """By the entries of cliques and messages."""
        seconds = self.sum_seconds(self.order) + len(self.problem.cardinalities) * self.variable_seconds
        return seconds * (1.0 if marginals else self.log_z_share)

    @classmethod
    def sum_seconds(cls, order: Order) -> float:
        """Of the sums along an order, with marginals."""
        return order.entries * cls.entry_seconds + order.message_entries * cls.message_seconds

    def memory(self, *, marginals: bool) -> int:
        """What is kept, and room for a bucket at work; a lower limit where the order is out of reach."""
        if self.planned:
            return self._memory(marginals)
        return 8 * self.order.least_entries

    def fallbacks(self) -> Iterator[Solver]:
        """Over what zeros leave possible, where whole tables are too large."""
        if self.planned and has_zeros(self.problem):
            yield SparseTree(self.problem, self.order)

    def slice(self, max_bytes: int, *, marginals: bool) -> Solver | None:
        """The same a slice at a time."""
        if self.planned:
            return slice_elimination(self, max_bytes, marginals=marginals)
        return None

    @abstractmethod
    def _memory(self, marginals: bool) -> int:
        """The same for a planned order."""


class BucketTree(Elimination):
    """In NumPy, one table a bucket."""

    # Seconds from which the choice between solvers predicts. On 13 models of 2 to 100 states measured over predicted
    # CPU time is 0.84 to 1.82, median 1.1 (NumPy 2.4, a Xeon).
    entry_seconds, message_seconds, variable_seconds, log_z_share = 1.1e-8, 3.3e-8, 6e-5, 0.5

    def _plan(self) -> None:
        """The clique of each bucket, (v, S) with S in elimination order, and where its message goes."""
        self.network = self.problem.network
        self.listed: list[int] = self.order.order.tolist()
        n = len(self.network.cardinalities)
        self.position = np.empty(n, dtype=np.int64)
        self.position[self.order.order] = np.arange(n)
        position = self.position.tolist()
        # Scopes of tables by the variable that is eliminated first.
        self.scopes_by_variable: list[list[Scope]] = [[] for _ in range(n)]
        for scope in self.network.tables:
            self.scopes_by_variable[min(scope, key=position.__getitem__)].append(scope)
        self.clique: list[Scope] = [()] * n
        self.children: list[list[int]] = [[] for _ in range(n)]
        # Pairs of all tables: `problem.pairs` may only list couplings.
        pairs = pairs_of(self.network.tables)
        for v, places in zip(self.listed, separators(self.order.order, pairs), strict=True):
            separator = [self.listed[p] for p in sorted(places)]
            self.clique[v] = (v, *separator)
            if separator:
                self.children[separator[0]].append(v)

    def _shape(self, scope: Scope) -> tuple[int, ...]:
        return tuple(self.network.cardinalities[v] for v in scope)

    def _memory(self, marginals: bool) -> int:
        """Exact in the tables that are kept; the arithmetic takes one and a half cliques and two messages."""
        live = peak = conditionals = 0
        messages = [math.prod(self._shape(clique[1:])) for clique in self.clique]
        for v in self.listed:
            entries, message = messages[v] * self.network.cardinalities[v], messages[v]
            peak = max(peak, live + conditionals + entries + entries // 2 + 2 * message)
            live += message - sum(messages[c] for c in self.children[v])
            if marginals:
                conditionals += entries
            peak = max(peak, live + conditionals)
        return 8 * peak

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """The forward pass, and the backward pass for marginals."""
        log_z, conditionals = self._forward(keep=marginals)
        if not marginals:
            return log_z, None
        return log_z, np.concatenate([np.empty(0), *self._backward(conditionals)])

    def _forward(self, *, keep: bool) -> tuple[float, list[FloatArray]]:
        """log Z and, if kept, p(x_v | x_S) of each variable over its clique (zero where S is impossible)."""
        constants = [self.network.constant]
        messages: dict[int, FloatArray] = {}
        conditionals: list[FloatArray] = [np.empty(0)] * len(self.clique)
        for v in self.listed:
            pieces = [(self._sort_scope(scope), self._transpose_table(scope)) for scope in self.scopes_by_variable[v]]
            pieces += [(self.clique[c][1:], messages.pop(c)) for c in self.children[v]]
            messages[v], conditional = self._eliminate(v, pieces)
            shift = float(messages[v].max())
            if shift == -np.inf:
                raise ZeroWeightError
            constants.append(shift)
            if messages[v].ndim:
                messages[v] -= shift
            if keep:
                conditionals[v] = conditional
            # Large tables are freed before the next bucket.
            del conditional, pieces
        return math.fsum(constants), conditionals

    def _eliminate(self, v: int, pieces: list[tuple[Scope, FloatArray]]) -> tuple[FloatArray, FloatArray]:
        """The log message of a bucket and its conditional, made in place of the bucket's table."""
        table = self._combine(self.clique[v], pieces)
        peak = np.asarray(table.max(axis=0))
        # -inf - -inf would be NaN; impossible entries keep weight 0.
        np.copyto(peak, 0.0, where=np.isneginf(peak))
        table -= peak
        np.exp(table, out=table)
        total = np.asarray(table.sum(axis=0))
        np.divide(table, total, out=table, where=total > 0)
        with np.errstate(divide="ignore"):
            message = np.log(total, out=total)
        message += peak
        return message, table

    def _sort_scope(self, scope: Scope) -> Scope:
        return tuple(sorted(scope, key=self.position.__getitem__))

    def _transpose_table(self, scope: Scope) -> FloatArray:
        order = sorted(range(len(scope)), key=lambda k: self.position[scope[k]])
        return self.network.tables[scope].transpose(order)

    def _combine(self, clique: Scope, pieces: list[tuple[Scope, FloatArray]]) -> FloatArray:
        """The sum of tables over the clique, small ones first; to spread each over all of it takes twice as long."""
        total = np.zeros([1] * len(clique)) if pieces else np.zeros(self._shape(clique))
        for scope, table in sorted(pieces, key=lambda piece: piece[1].size):
            term = self._expand(table, scope, clique)
            if np.broadcast_shapes(total.shape, term.shape) == total.shape:
                total += term
            else:
                total = total + term
        return total

    def _host(self, array: FloatArray) -> FloatArray:
        """The array as NumPy's, which it is already unless a device holds it."""
        return array

    def _expand(self, table: FloatArray, scope: Scope, target: Scope) -> FloatArray:
        sizes = {v: self.network.cardinalities[v] for v in scope}
        return table.reshape([sizes.get(v, 1) for v in target])

    def joint_tables(self) -> dict[Scope, FloatArray]:
        """Probabilities over the scope of each of the network's tables."""
        return self.solve_with_joint(self.network.tables)[2]

    def solve_with_joint(self, scopes: Collection[Scope]) -> tuple[float, FloatArray, dict[Scope, FloatArray]]:
        """log Z, marginals, and probabilities over the scopes of some of the network's tables; raises as `solve`."""
        log_z, conditionals = self._forward(keep=True)
        joint = dict.fromkeys(scopes, np.empty(0))
        flat = np.concatenate([np.empty(0), *self._backward(conditionals, joint)])
        return log_z, flat, joint

    def _backward(
        self, conditionals: list[FloatArray], joint: dict[Scope, FloatArray] | None = None
    ) -> list[FloatArray]:
        """p(x_v) of all variables. Eats the conditionals, to hold one big table less at a time; fills in `joint`."""
        marginals: list[FloatArray] = [np.empty(0)] * len(self.clique)
        priors: dict[int, FloatArray] = {}
        for v in reversed(self.listed):
            belief = conditionals[v]
            conditionals[v] = np.empty(0)
            if v in priors:
                belief *= priors.pop(v)
            marginal = self._host(belief.reshape((belief.shape[0], -1)).sum(axis=1))
            marginals[v] = marginal / marginal.sum()
            if joint is not None:
                whole, scopes = self._host(belief), joint.keys() & self.scopes_by_variable[v]
                joint |= {scope: self._within(whole, self.clique[v], scope) for scope in scopes}
            for child in self.children[v]:
                separator = self.clique[child][1:]
                priors[child] = self._sum_axes(belief, [k for k, u in enumerate(self.clique[v]) if u not in separator])
        return marginals

    def _sum_axes(self, table: FloatArray, axes: list[int]) -> FloatArray:
        return sum_axes(table, axes)

    @staticmethod
    def _within(belief: FloatArray, clique: Scope, scope: Scope) -> FloatArray:
        """What a clique's table says of a part of its variables, axes in the order of `scope`."""
        remaining = [u for u in clique if u in scope]
        table = sum_axes(belief, [k for k, u in enumerate(clique) if u not in scope])
        turned = np.asarray(table).transpose([remaining.index(u) for u in scope])
        return np.asarray(turned / turned.sum())

    def sample(self, count: int, rng: np.random.Generator) -> IntArray:
        """Draws each variable given those eliminated after it."""
        _, conditionals = self._forward(keep=True)
        states = np.zeros((count, len(self.clique)), dtype=np.int64)
        for v in reversed(self.listed):
            table = self._host(conditionals[v])
            conditionals[v] = np.empty(0)
            index: tuple[slice | IntArray, ...] = slice(None), *(states[:, u] for u in self.clique[v][1:])
            conditional = table[index]
            states[:, v] = draw_states(conditional.reshape(len(table), -1), count, rng)
        return states

"""Bucket elimination by matrix products, for variables of many states.

The tables of a bucket are multiplied into two, L over some of its clique and R over the rest and what both share, so
that the message is Σ_x L(shared, rows, x) R(shared, x, columns): no table over the whole clique is made, and BLAS takes
a tenth of a nanosecond an entry of it. So do the two products of the way back, as the gradient of a product of matrices
is made of two others (Darwiche, "A differential approach to inference in Bayesian networks", 2003).

Sums are plain ones. Each table is scaled so that the logarithms of its entries lie evenly around 0; where those of a
bucket's tables may be too far apart together, `BucketTree` answers in logarithms.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator

import numpy as np

from spinbench.foundation.platforms import one_blas_thread
from spinbench.reference.elimination.bucket_tree import BucketTree, Elimination
from spinbench.reference.elimination.products import Product, Table, axes_in, centre, move_last, sum_axes
from spinbench.reference.network import FloatArray, IntArray, Scope, flat_network
from spinbench.reference.orders.order import Order
from spinbench.reference.problem import Problem
from spinbench.reference.solver import PrecisionError, Solver, draw_states

# Largest sum of the distances in nats from their middles of a bucket's tables: the backward pass multiplies two such
# numbers.
REACH = 300.0


class MatrixTree(BucketTree):
    """Elimination of any discrete model, its messages in plain arithmetic.

    Attributes:
        risk: weights of wide layers lie far apart, and the logarithms then take five times as long.
        product_seconds: of an entry of a clique, with marginals, which take three products of matrices.
        table_seconds: of an entry of L, R or a message, which is written and read anew: new memory is most of it.
        partial_seconds: of an entry of a product of more than two tables, whose axes come in any order.
        pass_seconds: of an entry of L or R for each child whose message is in it, as the way back sums it for each.
        batch_seconds: of each of the products of small matrices that make up a bucket's.
        bucket_seconds: of the calls to NumPy that a bucket takes.
    """

    risk = 1.5
    # Seconds from which the choice between solvers predicts. On 9 models of UAI-2006 and UAI-2008 measured over
    # predicted CPU time is 0.96 to 1.64, median 1.27, while others keep the caches busy (NumPy 2.4, a Xeon).
    product_seconds, table_seconds, partial_seconds, pass_seconds = 3e-10, 1.2e-8, 1.6e-8, 2.5e-9
    batch_seconds, bucket_seconds = 2e-7, 1e-4
    log_z_share = 0.4

    def __init__(self, problem: Problem, order: Order) -> None:
        super().__init__(problem, order)
        self.stopped = False

    @classmethod
    def build(cls, problem: Problem) -> Elimination:
        """For every problem; in logarithms where tables are so small that calls to NumPy are most of the time."""
        order = problem.order
        small = BucketTree.sum_seconds(order) < len(problem.cardinalities) * cls.bucket_seconds
        if small:
            return BucketTree(problem, order)
        return cls(problem, order)

    def interrupt(self) -> None:
        """End before the next bucket."""
        self.stopped = True

    def _plan(self) -> None:
        super()._plan()
        self.products: dict[int, Product] = {}
        for v in self.listed:
            self.products[v] = self._split(v)

    def _split(self, v: int) -> Product:
        """Into two groups, each table into the one that it makes larger by less."""
        pieces: list[tuple[Scope | int, Scope]] = [(scope, scope) for scope in self.scopes_by_variable[v]]
        pieces += [(child, self.products[child].message) for child in self.children[v]]
        # Largest first, also within both groups, as `_multiply` assumes.
        pieces.sort(key=lambda piece: -self._size(piece[1]))
        groups: tuple[list[Scope | int], list[Scope | int]] = [], []
        scopes: list[Scope] = [(), ()]
        for key, scope in pieces:
            unions = [tuple(dict.fromkeys((*old, *scope))) for old in scopes]
            growth = [self._size(new) - self._size(old) for new, old in zip(unions, scopes, strict=True)]
            # L is then often a single message, which needs no copy.
            side = int(len(scope) == 1 or growth[1] < growth[0])
            groups[side].append(key)
            scopes[side] = unions[side]
        left, right = scopes
        rows = tuple(u for u in left if u not in right and u != v)
        columns = tuple(u for u in right if u not in left and u != v)
        shared = tuple(u for u in left if u in right and u != v)
        parent = self.clique[v][1:2]
        # The parent sums over its own variable, which becomes the last axis of the message.
        if set(parent) <= set(rows):
            return Product(groups[1], groups[0], shared, columns, move_last(rows, parent))
        return Product(*groups, shared, rows, move_last(columns, parent))

    def _size(self, scope: Scope) -> int:
        return math.prod(self._shape(scope))

    def _shapes(self, v: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Of L and R."""
        product, states = self.products[v], self.network.cardinalities[v]
        shared = self._size(product.shared)
        return (shared, self._size(product.rows), states), (shared, states, self._size(product.columns))

    def _factor_and_message_entries(self, v: int) -> tuple[int, int, int]:
        """Entries of L, of R and of the message."""
        (shared, rows, states), (_, _, columns) = self._shapes(v)
        return shared * rows * states, shared * states * columns, shared * rows * columns

    def _partial_sizes(self, v: int) -> tuple[int, int]:
        """Entries of the products of all tables of L and R but the largest, at most."""
        left, right, _ = self._factor_and_message_entries(v)
        product = self.products[v]
        return left if len(product.left) > 2 else 0, right if len(product.right) > 2 else 0

    def _pass_entries(self, v: int) -> int:
        """Entries that the way back sums for the children of a bucket."""
        left, right, _ = self._factor_and_message_entries(v)
        sides = (left, self.products[v].left), (right, self.products[v].right)
        return sum(size for size, keys in sides for key in keys if isinstance(key, int))

    def predict_seconds(self, *, marginals: bool) -> float:
        """By the products, and by the tables that are made for them and by them."""
        if not self.planned:
            return super().predict_seconds(marginals=marginals)
        tables = sum(sum(self._factor_and_message_entries(v)) for v in self.listed)
        partial = sum(sum(self._partial_sizes(v)) for v in self.listed)
        seconds = self.product_seconds * self.order.entries + self.bucket_seconds * len(self.listed)
        seconds += self.table_seconds * tables + self.partial_seconds * partial
        seconds += self.pass_seconds * sum(map(self._pass_entries, self.listed))
        seconds += self.batch_seconds * sum(self._size(self.products[v].shared) for v in self.listed)
        values = sum(table.size for table in self.network.tables.values())
        return seconds * (1.0 if marginals else self.log_z_share) + self.value_seconds * values

    def _memory(self, marginals: bool) -> int:
        """Messages, for marginals all of them; room for the largest L and R, and for what these say of children."""
        live = peak = left = right = partial = 0
        for v in self.listed:
            larger, smaller, message = self._factor_and_message_entries(v)
            left, right, peak = max(left, larger), max(right, smaller), max(peak, live + message)
            partial = max(partial, *self._partial_sizes(v))
            live += message
            if not marginals:
                live -= sum(self._factor_and_message_entries(child)[2] for child in self.children[v])
        tables = sum(table.size for table in self.network.tables.values())
        return 8 * (peak + 2 * (left + right) + partial + 2 * tables)

    def fallbacks(self) -> Iterator[Solver]:
        """The same elimination in logarithms, and over what zeros leave possible."""
        yield BucketTree(self.problem, self.order)
        yield from Elimination.fallbacks(self)

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """Forward over all buckets, and back for marginals."""
        # A slice has its own memory, and several run in parallel: their caller limits BLAS.
        if self.room is not None:
            return self._solve(marginals=marginals)
        self.room = {}
        try:
            with one_blas_thread():
                return self._solve(marginals=marginals)
        finally:
            self.room = None

    def _solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        log_z, tables = self._sum_out(keep=marginals)
        if not marginals:
            return log_z, None
        return log_z, np.concatenate([np.empty(0), *self._add_back(tables)])

    def _sum_out(self, *, keep: bool) -> tuple[float, dict[Scope | int, Table]]:
        """log Z, and the tables of the network and messages; of the latter only what is kept.

        Raises:
            PrecisionError: plain sums might underflow, or the elimination was interrupted.
            ZeroWeightError: Z = 0.
        """
        flat = flat_network(self.network)
        values, reaches, shift = flat.linear()
        places = itertools.pairwise(flat.offset.tolist())
        tables: dict[Scope | int, Table] = {}
        for scope, (begin, end), reach in zip(self.network.tables, places, reaches.tolist(), strict=True):
            tables[scope] = Table(values[begin:end].reshape(self._shape(scope)), scope, 0.0, reach)
        constants = [self.network.constant, shift]
        for v in self.listed:
            if self.stopped:
                raise PrecisionError("elimination was interrupted")
            product = self.products[v]
            if sum(tables[key].reach for key in (*product.left, *product.right)) > REACH:
                raise PrecisionError("its factors are too strong for plain sums in float64")
            sums = np.matmul(*self._factors(v, tables))
            tables[v] = centre(sums, product.message, self._shape(product.message))
            constants.append(tables[v].shift)
            if not keep:
                for child in self.children[v]:
                    del tables[child]
        return math.fsum(constants), tables

    def _factors(self, v: int, tables: dict[Scope | int, Table]) -> tuple[FloatArray, FloatArray]:
        """L (shared, rows, states) and R (shared, states, columns)."""
        product, (left, right) = self.products[v], self._shapes(v)
        return (
            self._multiply("left", [tables[key] for key in product.left], product.left_scope(v)).reshape(left),
            self._multiply("right", [tables[key] for key in product.right], product.right_scope(v)).reshape(right),
        )

    def _multiply(self, name: str, pieces: list[Table], scope: Scope) -> FloatArray:
        """The product of tables, axes in the order of `scope`; of a single one a view, of none a one."""
        views = [
            self._expand(piece.values.transpose(axes_in(piece.scope, scope)), piece.scope, scope) for piece in pieces
        ]
        if len(views) == 1:
            return views[0]
        result = self.empty(name, self._size(scope)).reshape(self._shape(scope))
        if not views:
            result[...] = 1.0
            return result
        # The first view is the largest and is read only once.
        small = functools.reduce(np.multiply, views[:0:-1])
        return np.multiply(views[0], small, out=result)

    def _add_back(self, tables: dict[Scope | int, Table]) -> list[FloatArray]:
        """p(x_v) of all variables. The messages are overwritten: each by p of its axes over itself."""
        marginals = [np.empty(0)] * len(self.clique)
        for v in reversed(self.listed):
            message, product = tables.pop(v), self.products[v]
            (shared, rows, _), (_, _, columns) = self._shapes(v)
            ratio = message.values.reshape(shared, rows, columns)
            # A root's message is its factor of Z, by which beliefs are divided to give probabilities.
            if not product.message:
                ratio[...] = 1.0 / ratio
            ratio *= math.exp(-message.shift)
            left, right = self._factors(v, tables)
            belief = self.empty("left belief", left.size).reshape(left.shape)
            np.matmul(ratio, right.transpose(0, 2, 1), out=belief)
            belief *= left
            # NumPy's sum over all but a last axis of few states takes ten times as long as this product.
            marginal = np.ones(shared * rows) @ belief.reshape(shared * rows, -1)
            marginals[v] = marginal / marginal.sum()
            beliefs = [(belief, product.left_scope(v), product.left)]
            if any(isinstance(key, int) for key in product.right):
                belief = self.empty("right belief", right.size).reshape(right.shape)
                np.matmul(left.transpose(0, 2, 1), ratio, out=belief)
                belief *= right
                beliefs.append((belief, product.right_scope(v), product.right))
            for belief, scope, keys in beliefs:
                for child in [key for key in keys if isinstance(key, int)]:
                    self._divide(belief.reshape(self._shape(scope)), scope, tables[child])
        return marginals

    def sample(self, count: int, rng: np.random.Generator) -> IntArray:
        """Draws each variable given those eliminated after it."""
        if self.room is None:
            self.room = {}
        _, tables = self._sum_out(keep=True)
        states = np.zeros((count, len(self.clique)), dtype=np.int64)
        for v in reversed(self.listed):
            weights = np.ones((self.network.cardinalities[v], count))
            for table in (tables[key] for key in (*self.products[v].left, *self.products[v].right)):
                index: tuple[slice | IntArray, ...] = slice(None), *(states[:, u] for u in table.scope if u != v)
                factor = np.moveaxis(table.values, table.scope.index(v), 0)[index]
                weights *= factor.reshape(len(factor), -1)
            states[:, v] = draw_states(weights, count, rng)
        return states

    @staticmethod
    def _divide(belief: FloatArray, scope: Scope, message: Table) -> None:
        """Overwrites a message by what a table over more axes says of its own, over itself."""
        summed = sum_axes(belief, [k for k, u in enumerate(scope) if u not in message.scope])
        remaining = tuple(u for u in scope if u in message.scope)
        turned = summed.transpose([remaining.index(u) for u in message.scope])
        # Where a message is 0, the belief is 0 as well.
        np.divide(turned, message.values, out=message.values, where=message.values > 0)

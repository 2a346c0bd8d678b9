"""What the exact solvers work on: the model with everything trivial taken out, and the way back.

States that hard zeros rule out disappear, and with them variables of one state; a 1-of-K group of a
`PairwiseModel` becomes one variable of K states, so that the constraint costs nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from spinbench.models import FactorGraph, Model, Origin, PairwiseModel
from spinbench.models.groups import merge_groups
from spinbench.models.lattices import grid_edges, sort_edges
from spinbench.models.possible_states import origin_of_possible_states
from spinbench.reference.network import (
    FlatFactors,
    FloatArray,
    IntArray,
    Network,
    Pairwise,
    Scope,
    flat_network,
    flat_pairs,
    merge_tables,
    pairwise_of,
    split,
    without_zeros,
)
from spinbench.reference.orders.order import HOPELESS, SEARCH_SECONDS, Order, elimination_order, pairs_of
from spinbench.reference.orders.plan import breadth_first, neighbours


def grid_sites(pairwise: Pairwise) -> IntArray | None:
    """(R, C) int64, C <= R: the variables at the sites of the grid that a model's edges form, or None.

    They may be numbered row by row, edges missing or not, or in any order if all edges are there.
    """
    columns = _row_length(pairwise)
    site = np.arange(pairwise.size).reshape(-1, columns) if columns else _complete_grid(pairwise)
    if site is None or site.shape[1] <= site.shape[0]:
        return site
    return np.ascontiguousarray(site.T)


def _row_length(pairwise: Pairwise) -> int:
    """The number of columns of a grid numbered row by row, 0 if it is none."""
    if not len(pairwise.edges):
        return 0
    first, second = pairwise.edges.T
    steps = second - first
    columns = int(steps.max())
    right = second[steps == 1]
    down = np.count_nonzero(steps == columns)
    if columns == 1 or pairwise.size % columns or not right.size or right.size + down < steps.size:
        return 0
    # The end of a row and the beginning of the next also differ by one, but are no edge of a grid.
    if not (right % columns).all():
        return 0
    return columns


def _complete_grid(pairwise: Pairwise) -> IntArray | None:
    """Sites from the distances to two corners on the shorter side."""
    n = pairwise.size
    corners = np.flatnonzero(pairwise.degrees == 2).tolist()
    if n < 4 or len(corners) != 4 or pairwise.degrees.min() < 2 or pairwise.degrees.max() > 4:
        return None
    adjacency = neighbours(n, pairwise.edges)
    steps = breadth_first(adjacency, corners[0])
    beside = min(corners[1:], key=lambda corner: steps.get(corner, n))
    columns, back = steps.get(beside, n) + 1, breadth_first(adjacency, beside)
    if n % columns or len(back) < n:
        return None
    near = np.array([steps[v] for v in range(n)])
    # Distance from one corner is row + column, from the other row + columns - 1 - column.
    column = (near - [back[v] for v in range(n)] + columns - 1) // 2
    place = (near - column) * columns + column
    order = np.argsort(place)
    edges = sort_edges(place[pairwise.edges])
    if np.array_equal(place[order], np.arange(n)) and np.array_equal(edges, grid_edges(n // columns, columns)):
        return order.reshape(-1, columns)
    return None


class NotApplicableError(Exception):
    """A solver does not fit a problem; the message completes "needs …, and this model has …"."""


class MissingPackageError(NotApplicableError):
    """A solver needs a package that is not installed; the message completes "needs …" and says how to install it."""


class Problem:
    """A model seen as a `Network` and, where it is one, as a `Pairwise` model; both made when first asked for.

    Attributes:
        model: as given.
        cardinalities: (n,) of the variables that are left, all >= 2.
        hopeless: log2 of a number of entries beyond which a dense graph is given no elimination order.
        search_seconds: that the clocked search for one may take; 0: the order is the same on every machine.
        max_bytes: memory beyond which elimination is sliced; a wide model is searched for an order longer then.
        remarks: of solvers that were not there or gave up, for refusals.

    Raises:
        ModelError: the hard zeros leave a variable no state, so Z = 0.
    """

    def __init__(
        self,
        model: Model,
        *,
        hopeless: float = HOPELESS,
        search_seconds: float = SEARCH_SECONDS,
        max_bytes: float = math.inf,
    ) -> None:
        self.model, self.hopeless, self.search_seconds, self.max_bytes = model, hopeless, search_seconds, max_bytes
        self.remarks: list[str] = []
        self._couplings = _view_couplings(model)
        self.cardinalities = model.cardinalities
        if self._couplings is None:
            self.cardinalities = self.origin.derived_cardinalities

    @property
    def name(self) -> str:
        """The model's name, for messages."""
        return self.model.name

    @cached_property
    def origin(self) -> Origin:
        """How the model's variables follow from those of the problem, each from one at most."""
        model = self.model
        if self._couplings is not None:
            return Origin.identity(model.cardinalities)
        if isinstance(model, PairwiseModel):
            return Origin.of_groups(model.num_variables, model.groups)
        return origin_of_possible_states(model)

    @property
    def representatives(self) -> Sequence[int]:
        """(n,) for each variable of the problem the first of the model's that it carries."""
        if self._couplings is None:
            return self.origin.representatives
        return range(self.model.num_variables)

    def decode_marginals(self, flat: FloatArray) -> FloatArray:
        """From the probabilities of the problem's variables, one after another, to those of the model's."""
        if self._couplings is not None or self.origin.is_identity:
            return flat
        marginals, origin = split(flat, self.cardinalities), self.origin
        decoded = []
        for k, states, carriers in zip(origin.cardinalities, origin.states, origin.variables, strict=True):
            decoded.append(np.bincount(states, marginals[carriers[0]] if carriers else None, minlength=k))
        return np.concatenate(decoded)

    @cached_property
    def num_states(self) -> int:
        """Number of joint states (a Python integer, never overflows)."""
        return math.prod(k**count for k, count in Counter(self.cardinalities).items())

    @cached_property
    def network(self) -> Network:
        """The general view."""
        if isinstance(self.model, PairwiseModel):
            graph = merge_groups(self.model)
            return _lower(graph, origin_of_possible_states(graph))
        return _lower(self.model, self.origin)

    @cached_property
    def pairs(self) -> IntArray:
        """(E, 2) variables that share a table."""
        if self._couplings is not None:
            return self._couplings.edges
        return pairs_of(self.network.tables)

    @cached_property
    def order(self) -> Order:
        """The elimination order; searched for once, or set by who knows it."""
        return elimination_order(
            self.cardinalities,
            self.pairs,
            seconds=self.search_seconds,
            hopeless=self.hopeless,
            max_bytes=self.max_bytes,
        )

    @cached_property
    def pairwise_view(self) -> Pairwise | None:
        """The view of finite couplings between binary variables; None where there is none."""
        if self._couplings is not None:
            return self._couplings
        network = self.network
        return pairwise_of(network.cardinalities, list(network.tables), list(network.tables.values()), network.constant)

    @cached_property
    def flat(self) -> FlatFactors:
        """The general view in flat arrays; for models of pairs no table is made one by one."""
        if self._couplings is None:
            return flat_network(self.network)
        return flat_pairs(self._couplings)

    @property
    def pairwise(self) -> Pairwise:
        """The view of finite couplings between binary variables.

        Raises:
            NotApplicableError: there is none.
        """
        if self.pairwise_view is None:
            raise NotApplicableError("binary variables and finite pairwise couplings, and this model has others")
        return self.pairwise_view

    @cached_property
    def sites(self) -> IntArray:
        """(R, C), C <= R: the variables at the sites of an open-boundary grid.

        Raises:
            NotApplicableError: the model is none.
        """
        sites = grid_sites(self.pairwise)
        if sites is None:
            raise NotApplicableError("an open-boundary grid, and this model is none")
        return sites


class NetworkProblem(Problem):
    """Tables that are no model's own, such as those of a slice."""

    def __init__(self, network: Network, name: str) -> None:
        self.network = network
        self.cardinalities = network.cardinalities
        self.hopeless, self.search_seconds, self.max_bytes = HOPELESS, 0.0, math.inf
        self._name, self._couplings = name, None
        self.remarks = []

    @property
    def name(self) -> str:
        return self._name


def _view_couplings(model: Model) -> Pairwise | None:
    """The view of couplings, where the model shows it as it is."""
    if isinstance(model, FactorGraph):
        scopes, tables = [f.scope for f in model.factors], [f.log_table for f in model.factors]
        return pairwise_of(model.cardinalities, scopes, tables, model.log_constant)
    if model.groups:
        return None
    return Pairwise(model.biases, *without_zeros(model.edges, model.couplings), model.log_constant)


def _lower(graph: FactorGraph, origin: Origin) -> Network:
    """The model's tables over the possible states of the variables that are left."""
    sources, cards = origin.carriers.tolist(), origin.derived_cardinalities
    every = Origin.identity(origin.cardinalities).states
    unchanged = [
        v >= 0 and possible == all_states for v, possible, all_states in zip(sources, origin.states, every, strict=True)
    ]

    def pieces() -> Iterable[tuple[Scope, FloatArray]]:
        for scope, table in ((factor.scope, factor.log_table) for factor in graph.factors):
            rest = tuple([sources[v] for v in scope if sources[v] >= 0])
            if all(unchanged[v] for v in scope):
                yield rest, table
            else:
                yield rest, table[np.ix_(*(origin.states[v] for v in scope))].reshape([cards[u] for u in rest])

    return merge_tables(cards, pieces(), graph.log_constant)

"""States that the hard zeros of a lowered model allow, found by search with generalised arc consistency."""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError, UnsupportedError
from spinbench.mathematics.graphs.message_layouts import FloatArray, Graph, IntArray, scopes

BoolArray = npt.NDArray[np.bool_]

MAX_CHOICES = 20_000
"""Values that one search may try before it gives up."""


def feasible_states(graph: Graph, count: int, name: str) -> IntArray:
    """(n, count) states of the graph's variables of positive weight, or (n, 0) where no factor has a zero.

    The first search tries the states of each variable by their own weight, the others by perturbed weights; the
    states that they find may agree.

    Raises:
        ModelError: there is no such state.
        UnsupportedError: a search gave up after `MAX_CHOICES` tries.
    """
    search = _Search(graph, name)
    if not search.supports:
        return np.zeros((len(graph.first), 0), dtype=np.int64)
    rng = np.random.default_rng(0)
    found = []
    for k in range(count):
        noise = rng.gumbel(size=len(search.weights)) if k else np.zeros(len(search.weights))
        found.append(search.run(search.weights + noise))
    return np.stack(found, axis=1)


class _Search:
    """Depth first, one variable after another, with every domain pruned after each choice."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.name = name
        cards = graph.cardinalities
        self.first_state = graph.first + np.arange(len(cards))
        self.weights: FloatArray = np.zeros(int(cards.sum()))
        self.weights[np.arange(len(graph.theta)) + graph.variable + 1] = graph.theta
        self.cards = cards.tolist()
        self.supports: list[BoolArray] = []
        self.members: list[tuple[int, ...]] = []
        self.touching: list[list[int]] = [[] for _ in self.cards]
        for members, tables in scopes(graph).values():
            hard = np.isneginf(tables).reshape(len(tables), -1).any(axis=1)
            for scope, table in zip(members[hard].tolist(), tables[hard], strict=True):
                for v in scope:
                    self.touching[v].append(len(self.supports))
                self.members.append(tuple(scope))
                self.supports.append(table > -np.inf)

    def run(self, weights: FloatArray) -> IntArray:
        """One state; values of large weight are tried first."""
        self.domains = [np.ones(k, dtype=bool) for k in self.cards]
        rank = [np.argsort(-weights[a : a + k]) for a, k in zip(self.first_state.tolist(), self.cards, strict=True)]
        order = [v for v in range(len(self.cards)) if self.touching[v]]
        trail: list[tuple[int, int, list[tuple[int, BoolArray]]]] = []  # (depth, tries, domains before)
        depth, tries, choices = 0, 0, 0
        while depth < len(order):
            v = order[depth]
            candidates = [x for x in rank[v].tolist() if self.domains[v][x]]
            if tries == len(candidates):
                if not trail:
                    raise ModelError(f"{self.name}: the zeros of the factors allow no state at all, so Z = 0")
                depth, tries, changes = trail.pop()
                self._undo(changes)
                tries += 1
                continue
            choices += 1
            if choices > MAX_CHOICES:
                raise UnsupportedError(
                    f"{self.name}: no state that the zeros of the factors allow was found in {MAX_CHOICES} tries; "
                    "mf needs one to start from, and bp does not"
                )
            changes = [(v, self.domains[v])]
            self.domains[v] = np.arange(self.cards[v]) == candidates[tries]
            if self._propagate(v, changes):
                trail.append((depth, tries, changes))
                depth, tries = depth + 1, 0
            else:
                self._undo(changes)
                tries += 1
        return np.array(
            [next(x for x in order.tolist() if d[x]) for order, d in zip(rank, self.domains, strict=True)],
            dtype=np.int64,
        )

    def _undo(self, changes: list[tuple[int, BoolArray]]) -> None:
        for v, domain in reversed(changes):
            self.domains[v] = domain

    def _propagate(self, start: int, changes: list[tuple[int, BoolArray]]) -> bool:
        """Prunes domains after a change of one; False if one becomes empty."""
        queue = deque(self.touching[start])
        waiting = set(queue)
        while queue:
            index = queue.popleft()
            waiting.discard(index)
            scope = self.members[index]
            allowed = self.supports[index]
            for axis, v in enumerate(scope):
                shape = [1] * len(scope)
                shape[axis] = -1
                allowed = allowed & self.domains[v].reshape(shape)
            for axis, v in enumerate(scope):
                alive = np.asarray(allowed.any(axis=tuple(k for k in range(len(scope)) if k != axis)))
                if not alive.any():
                    return False
                if (alive != self.domains[v]).any():
                    changes.append((v, self.domains[v]))
                    self.domains[v] = alive
                    for other in self.touching[v]:
                        if other not in waiting:
                            waiting.add(other)
                            queue.append(other)
        return True

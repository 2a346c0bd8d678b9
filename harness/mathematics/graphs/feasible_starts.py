"""States that the hard zeros of a model allow: starts of positive weight, drawn anew for each chain, or likely ones.

Search with propagation: a variable's states are tried in random order, or by their weights, and after each choice every
factor takes from its variables the states that none of its entries supports any more (generalised arc consistency;
tables of bits as in Demeulenaere et al., "Compact-Table", CP 2016). The next variable is one of few states whose
factors have failed often (Boussemart et al., "Boosting systematic search by weighting constraints", ECAI 2004); a
search that fails often begins again from the top, with what it has learnt.

Parities hide from propagation until all but one of their variables are set. So they are solved by elimination, and a
variable's first state is that of a solution; after a failure there has to be another (`parities`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError, UnsupportedError
from spinbench.foundation import deadline
from spinbench.mathematics.graphs import message_layouts, parities
from spinbench.models import Factor, FactorGraph

# Largest number of choices for one chain: beyond it the model is refused, since a search may take for ever.
MAX_CHOICES = 100_000
# Failures before the first restart; the limit grows by half each time, so that a search that would succeed is not cut
# off for ever.
FIRST_RESTART = 200


def feasible_starts(graph: FactorGraph, chains: int, seed: int) -> message_layouts.IntArray:
    """(N, C) states of positive weight, random and independent, but not draws of the model.

    A variable that no zero concerns is uniform.

    Args:
        graph: the model.
        chains: C.
        seed: of the choices; a chain's start does not depend on how many chains there are.

    Raises:
        ModelError: no state has positive weight, so Z = 0.
        UnsupportedError: none was found in `MAX_CHOICES` tries.
        OverdueError: none was found before the deadline.
    """
    search = _Search(graph.name, graph.cardinalities, graph.factors, ", and chains have to start from one")
    starts = np.empty((graph.num_variables, chains), dtype=np.int64)
    for c in range(chains):
        # Each chain has its own stream: its initial state does not depend on the number of chains.
        rng = np.random.default_rng(np.random.SeedSequence((seed, c, 0x46454153)))
        starts[:, c] = search.run(rng)
    return starts


def feasible_states(graph: message_layouts.Graph, count: int, name: str) -> message_layouts.IntArray:
    """(n, count) states of a lowered model's variables of positive weight, or (n, 0) where no factor has a zero.

    The first search tries the states of each variable by their own weight, the others by perturbed weights; the
    states that they find may agree.

    Raises:
        ModelError: there is no such state.
        UnsupportedError: a search gave up after `MAX_CHOICES` tries.
    """
    factors: list[Factor] = []
    for members, tables in message_layouts.scopes(graph).values():
        factors += map(Factor, map(tuple, members.tolist()), tables)
    need = "; mf needs one to start from, and bp does not"
    search = _Search(name, graph.cardinalities.tolist(), factors, need)
    if not search.is_constrained:
        return np.zeros((len(graph.first), 0), dtype=np.int64)
    weights = np.zeros(int(graph.cardinalities.sum()))
    weights[np.arange(len(graph.theta)) + graph.variable + 1] = graph.theta
    ends, rng = np.cumsum(graph.cardinalities)[:-1], np.random.default_rng(0)
    states, noise = [], np.zeros(len(weights))
    for _ in range(count):
        states.append(search.run(rng, np.split(weights + noise, ends)))
        noise = rng.gumbel(size=len(weights))
    return np.stack(states, axis=1)


class _Constraint:
    """The entries of a factor that are not zero, numbered; sets of them and of states are the bits of integers."""

    def __init__(self, factor: Factor) -> None:
        self.scope = factor.scope
        places = np.argwhere(factor.log_table > -np.inf)
        self._every = (1 << len(places)) - 1
        self._with = [
            [_bits(places[:, axis] == k) for k in range(size)] for axis, size in enumerate(factor.log_table.shape)
        ]
        self._among: list[dict[int, int]] = [{(1 << len(each)) - 1: self._every} for each in self._with]

    def prune(self, domains: list[int]) -> Iterator[tuple[int, int]]:
        """(variable, states) of those that keep fewer states than they have; none at all where nothing is left."""
        alive = self._every
        for axis, v in enumerate(self.scope):
            alive &= self._entries(axis, domains[v])
        for axis, v in enumerate(self.scope):
            domain = remaining = domains[v]
            for k in parities.members_of(domain):
                if not alive & self._with[axis][k]:
                    remaining ^= 1 << k
            if remaining != domain:
                yield v, remaining

    def _entries(self, axis: int, domain: int) -> int:
        cache = self._among[axis]
        if domain not in cache:
            entries = 0
            for k in parities.members_of(domain):
                entries |= self._with[axis][k]
            cache[domain] = entries
        return cache[domain]


class _Search:
    """Depth first, with restarts. Failures are counted anew for each chain, whose start is its own affair."""

    def __init__(self, name: str, cards: Sequence[int], factors: Sequence[Factor], need: str) -> None:
        self._name, self._cards, self._need = name, cards, need
        hard = [f for f in factors if f.scope and f.log_table.min() == -np.inf]
        self.is_constrained = bool(hard)
        self._constraints = [_Constraint(factor) for factor in hard]
        self._parities = parities.find_parities(len(cards), hard)
        self._touching: list[list[int]] = [[] for _ in self._cards]
        for index, constraint in enumerate(self._constraints):
            for v in constraint.scope:
                self._touching[v].append(index)
        self._degrees = np.array([len(near) for near in self._touching], dtype=np.float64)
        self._touched, self._failures = self._degrees > 0, self._degrees.copy()
        self._top = [(1 << k) - 1 for k in self._cards]
        contradicted = self._parities is not None and not self._parities.possible
        if contradicted or not self._propagate(self._top, range(len(self._constraints))):
            raise self._impossible()

    def run(
        self, rng: np.random.Generator, weights: Sequence[message_layouts.FloatArray] | None = None
    ) -> message_layouts.IntArray:
        """One state, from random states of each variable, or from those of large weight where weights are given."""
        self._choices, self._weights, patience = 0, weights, FIRST_RESTART
        self._failures = self._degrees.copy()
        while True:
            domains = self._descend(rng, patience)
            if domains is not None:
                return np.array([self._pick(v, domain, rng) for v, domain in enumerate(domains)], dtype=np.int64)
            patience += patience // 2

    def _descend(self, rng: np.random.Generator, patience: int) -> list[int] | None:
        """Domains of one state each for the variables that zeros concern; None after so many failures."""
        domains = self._top.copy()
        solution = self._parity_solution(domains, rng)
        if solution is None:
            raise self._impossible()
        # Stack of (domains before a choice, its variable, its state).
        trail: list[tuple[list[int], int, int]] = []
        while (v := self._next(domains, rng)) >= 0:
            k = solution >> v & 1 if self._follows(v) else self._pick(v, domains[v], rng)
            self._choices += 1
            deadline.check()
            if self._choices > MAX_CHOICES:
                raise UnsupportedError(
                    f"{self._name}: no state that the zeros of the factors allow was found in {MAX_CHOICES} tries"
                    f"{self._need}"
                )
            trail.append((domains, v, k))
            domains = domains.copy()
            domains[v] = 1 << k
            failed = False
            while not self._propagate(domains, self._touching[v]) or (
                failed and (solution := self._parity_solution(domains, rng)) is None
            ):
                failed = True
                patience -= 1
                if not trail:
                    raise self._impossible()
                domains, v, k = trail.pop()
                # Removes the state that failed; others remain, since only variables with several states are chosen.
                domains[v] ^= 1 << k
            if patience < 0:
                return None
        return domains

    def _parity_solution(self, domains: list[int], rng: np.random.Generator) -> int | None:
        """A state, as bits, in which the parities hold; None where the domains leave none."""
        return 0 if self._parities is None else self._parities.solution(domains, rng)

    def _follows(self, v: int) -> bool:
        return self._parities is not None and bool(self._parities.variables >> v & 1)

    def _next(self, domains: list[int], rng: np.random.Generator) -> int:
        """Of few states for the failures of its factors; of equal ones a random one. -1 where no choice is left."""
        sizes = np.array([domain.bit_count() for domain in domains]) * self._touched
        candidates = np.flatnonzero(sizes > 1)
        if not len(candidates):
            return -1
        noise = 1 + 1e-9 * rng.random(len(candidates))
        # dom/wdeg (Boussemart et al. 2004): variables with few states and with factors that failed often come first.
        return int(candidates[int(np.argmin(sizes[candidates] / self._failures[candidates] * noise))])

    def _propagate(self, domains: list[int], begin: range | list[int]) -> bool:
        """Prunes domains in place; False where a variable keeps no state."""
        queue = list(begin)
        waiting = set(queue)
        while queue:
            index = queue.pop()
            waiting.discard(index)
            constraint = self._constraints[index]
            for v, remaining in constraint.prune(domains):
                if not remaining:
                    self._failures[list(constraint.scope)] += 1
                    return False
                domains[v] = remaining
                for other in self._touching[v]:
                    if other != index and other not in waiting:
                        waiting.add(other)
                        queue.append(other)
        return True

    def _pick(self, v: int, domain: int, rng: np.random.Generator) -> int:
        """A random one of the states, or the one of the largest weight."""
        states = parities.members_of(domain)
        if self._weights is not None:
            return max(states, key=self._weights[v].__getitem__)
        if len(states) > 1:
            return states[int(rng.integers(len(states)))]
        return states[0]

    def _impossible(self) -> ModelError:
        return ModelError(f"{self._name}: the zeros of the factors allow no state at all, so Z = 0")


def _bits(mask: npt.NDArray[np.bool_]) -> int:
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")

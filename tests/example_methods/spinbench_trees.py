"""Gibbs sampling of trees: steps on the host, with exact draws by dynamic programming, on every backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spinbench.api import Array, Estimate, Key, Method, PairwiseModel, Program, Reduction, Trace, marginal_claims
from spinbench.errors import UnsupportedError


class Forest(NamedTuple):
    """Variables among which the couplings have no loop, roots before their children.

    members: (n,) the variables. parents: (n,) the place of each one's parent in `members`, -1 for roots. weights: (n,)
    the coupling to it. biases: (n,). outer: (n, N) couplings to all other variables, 0 within the forest.
    """

    members: Any
    parents: Any
    weights: Any
    biases: Any
    outer: Any


@dataclass(frozen=True)
class TreeGibbs(Method):
    """Blocked Gibbs sampling: each block a forest, drawn exactly given the rest.

    Hamze and de Freitas, "From fields to trees", UAI 2004. Draws of a forest: fields are summed from the leaves to the
    roots, and states drawn from the roots to the leaves.
    """

    name: ClassVar[str] = "tree_gibbs"
    summary: ClassVar[str] = "Gibbs sampling of forests"

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        return {"s": "sum"}

    def plan(self, model: PairwiseModel) -> tuple[Forest, ...]:  # type: ignore[override]
        if model.groups:
            raise UnsupportedError(f"{model.name}: tree_gibbs knows no variables of more than two states")
        W, left, found = model.dense(), set(range(model.num_variables)), []
        while left:
            members, parents = forest(W, left)
            left -= set(members)
            weights = [W[v, members[p]] if p >= 0 else 0.0 for v, p in zip(members, parents, strict=True)]
            outer = W[members].copy()
            outer[:, members] = 0.0
            found.append(Forest(np.array(members), np.array(parents), np.array(weights), model.biases[members], outer))
        return tuple(found)

    def program(self, backend: Any) -> Program:
        """NumPy alone: `key` is what a NumPy generator is made of."""

        def step(key: Key, tables: tuple[Forest, ...], s: Array) -> Array:
            rng, s = np.random.default_rng(key), s.copy()
            for block in tables:
                u = rng.random((len(block.members), s.shape[1]), dtype=s.dtype)
                s[block.members] = draw(block, block.biases[:, None] + block.outer @ s, u)
            return s

        return Program(lambda key, tables, start: start, step, lambda tables, s: {"s": s}, compiled=False)

    def estimate(self, model: PairwiseModel, tables: Any, trace: Trace) -> Estimate:  # type: ignore[override]
        means = trace.mean("s").mean(axis=-1)
        found = marginal_claims(trace.series("s"), trace.samples, np.zeros(len(means)), np.ones(len(means)))
        doubts = (f"marginals {found.doubt}",) if found.doubt else ()
        return Estimate(
            marginals=means,
            marginals_se=found.se,
            marginals_error_bound=found.error_bounds,
            r_hat=found.r_hat,
            doubts=doubts,
        )


def forest(W: np.ndarray, left: set[int]) -> tuple[list[int], list[int]]:
    """(members, places of their parents); variables with two neighbours among the members stay outside."""
    members: list[int] = []
    parents: list[int] = []
    waiting, place = sorted(left, reverse=True), {}
    while waiting:
        v = waiting.pop()
        near = [place[u] for u in np.flatnonzero(W[v]).tolist() if u in place]
        if v in place or len(near) > 1:
            continue
        place[v] = len(members)
        members.append(v)
        parents.append(near[0] if near else -1)
        waiting += [u for u in np.flatnonzero(W[v]).tolist() if u in left and u not in place]
    return members, parents


def draw(block: Forest, fields: np.ndarray, u: np.ndarray) -> np.ndarray:
    """(n, C) exact draws of a forest with fields (n, C) by uniform numbers u (n, C)."""
    for i in range(len(fields) - 1, -1, -1):
        if (p := block.parents[i]) >= 0:
            fields[p] += np.logaddexp(0, fields[i] + block.weights[i]) - np.logaddexp(0, fields[i])
    s = np.zeros_like(u)
    for i, p in enumerate(block.parents):
        field = fields[i] + block.weights[i] * s[p] if p >= 0 else fields[i]
        s[i] = u[i] < 0.5 + 0.5 * np.tanh(0.5 * field)
    return s

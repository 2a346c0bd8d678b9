"""The compact Forney form of a binary pairwise model: one node a variable, one edge a coupling, no zeros.

The pair weights M(s_u, s_v) > 0 of a coupling are written as M = A Bᵀ with A, B > 0, the sum over the states of a
new variable x on the edge; A stays at u and B at v:

    f_u(x_u) = Σ_s u(s) Π_e A_e(s, x_e).

With ratios r_j = M(1, j) / M(0, j) and the margin h > 0 (`spread`), A = [[1, 1/hi], [lo, 1]] for lo = min(r) e^-h and
hi = max(r) e^h, so that B = (A⁻¹ M)ᵀ is positive, too. Small margins leave B close to zero; h = 1 serves well.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError, UnsupportedError
from spinbench.models.forney.model import FloatArray, ForneyModel, check_degree
from spinbench.models.forney.network import Network
from spinbench.models.pairwise import PairwiseModel


def from_pairwise(model: PairwiseModel, mode: npt.ArrayLike | None = None, spread: float = 1.0) -> ForneyModel:
    """The compact form; variables with at most one coupling are summed first, again and again.

    Args:
        model: without 1-of-K groups.
        mode: (N,) a state of high probability, which becomes the one whose edges are mostly 0; all zeros by default.
        spread: the margin h.

    Raises:
        ModelError: a mode that is not (N,) of 0 and 1, or a spread that is not positive.
        UnsupportedError: 1-of-K groups, or a variable with more than `MAX_DEGREE` couplings.
    """
    if model.groups:
        raise UnsupportedError(f"{model.name}: it has 1-of-K groups; the compact Forney form needs independent units")
    n = model.num_variables
    flips = np.zeros(n, dtype=np.int64) if mode is None else np.asarray(mode).astype(np.int64)
    if flips.shape != (n,) or ((flips != 0) & (flips != 1)).any():
        raise ModelError(f"{model.name}: the mode has shape {flips.shape}; ({n},) of 0 and 1 is needed")
    if not 0 < spread < np.inf:
        raise ModelError(f"{model.name}: spread is {spread}; a positive number is needed")
    return _Compact(model, flips, spread).model()


class _Compact:
    """A pairwise model in t = s XOR mode whose leaves are summed before the others get tables."""

    def __init__(self, model: PairwiseModel, flips: npt.NDArray[np.int64], spread: float) -> None:
        self.source = model
        self.flips = flips
        self.spread = spread
        self.network = Network(model.name, model.log_constant)
        states = np.arange(2) ^ flips[:, None]  # (N, 2) s of each t
        self.weights = model.biases[:, None] * states
        i, j = model.edges.T
        self.couplings = model.couplings[:, None, None] * states[i][:, :, None] * states[j][:, None, :]
        # a coupling of 0 would cost an edge
        self.around: list[dict[int, int]] = [{} for _ in range(model.num_variables)]
        for e in np.flatnonzero(model.couplings).tolist():
            u, v = int(i[e]), int(j[e])
            self.around[u][v] = self.around[v][u] = e
        self.children: list[tuple[int, int, FloatArray]] = []

    def model(self) -> ForneyModel:
        kept = self._sum_leaves()
        network = self.network
        network.ends = {e: [u, v] for u in kept for v, e in self.around[u].items() if u < v}
        factors = {e: _factors(self.couplings[e], self.spread) for e in network.ends}
        for u in kept:
            slots = sorted(self.around[u].values())
            check_degree(self.source.name, f"variable {u}", len(slots))
            logs = [self.weights[u][t] for t in (0, 1)]
            for k, e in enumerate(slots):
                shape = [2 if m == k else 1 for m in range(len(slots))]
                ends = factors[e][network.ends[e].index(u)]
                logs = [logs[t] + ends[t].reshape(shape) for t in (0, 1)]
            total = np.logaddexp(logs[0], logs[1])
            network.add(u, total, slots)
            network.carried[u][u] = np.exp(logs[1 - self.flips[u]] - total)
        network.attach(self.children)
        return network.model(self.source.num_variables)

    def _sum_leaves(self) -> list[int]:
        """Sums variables of degree 1 and 0; those that stay are returned, ascending."""
        waiting = list(range(len(self.around)))
        gone: set[int] = set()
        while waiting:
            v = waiting.pop()
            if v in gone or len(self.around[v]) > 1:
                continue
            gone.add(v)
            one = 1 - int(self.flips[v])  # the t of s = 1
            if not self.around[v]:
                total = float(np.logaddexp(*self.weights[v]))
                self.network.log_constant += total
                self.network.constants[v] = float(np.exp(self.weights[v][one] - total))
                continue
            (u, e) = next(iter(self.around[v].items()))
            del self.around[u][v]
            pair = self.couplings[e] if u < v else self.couplings[e].T  # (t_u, t_v)
            joint = pair + self.weights[v]
            total_given = np.logaddexp(joint[:, 0], joint[:, 1])
            given = np.exp(joint[:, one] - total_given)
            self.children.append((v, u, given if self.flips[u] == 0 else given[::-1]))
            self.weights[u] = self.weights[u] + total_given
            waiting.append(u)
        return [v for v in range(len(self.around)) if v not in gone]


def _factors(log_pair: FloatArray, spread: float) -> tuple[FloatArray, FloatArray]:
    """log A and log B of M = A Bᵀ, both (2, 2): rows are the states of an end, columns those of the edge."""
    ratio = log_pair[1] - log_pair[0]
    low, high = ratio.min() - spread, ratio.max() + spread
    a = np.array([[0.0, -high], [low, 0.0]])
    determinant = np.log1p(-np.exp(low - high))
    first = log_pair[0] + np.log1p(-np.exp(ratio - high))
    second = log_pair[1] + np.log1p(-np.exp(low - ratio))
    return a, np.stack([first, second], axis=1) - determinant

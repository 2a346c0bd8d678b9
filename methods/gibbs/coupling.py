"""Two Gibbs chains that are driven by the same random numbers, so that they meet.

Chain X is L sweeps ahead of chain Y, and both begin with independent draws of the same law of starts. One number
updates a site of both, by the maximal coupling of their conditionals p and q: with probability Σ_k min(p_k, q_k) both
take the same state. Where all states are alike they stay so. Biswas, Jacob and Vanetti, "Estimating convergence of
Markov chains with L-lag couplings", NeurIPS 2019. Sweeps are compiled, whatever the backend:
`backends.numba.tables.coupled`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


class CoupledPairs(NamedTuple):
    """P pairs of chains on their way; arrays are written to.

    Attributes:
        keys: (2, P) uint64 streams of random numbers: number k is the hash of start + k gamma, gamma odd.
        x, y: (P, N) int64 states, y being L sweeps behind.
        met: (P,) int64 sweeps of X after which both were the same for the first time; -1: not yet.
    """

    keys: npt.NDArray[np.uint64]
    x: IntArray
    y: IntArray
    met: IntArray


def start_coupled_pairs(seed: int | Sequence[int], x: npt.ArrayLike, y: npt.ArrayLike) -> CoupledPairs:
    """P pairs at initial states (N, P) of both chains."""
    ahead, behind = (np.ascontiguousarray(np.asarray(states, dtype=np.int64).T) for states in (x, y))
    keys = np.random.SeedSequence(seed).generate_state(2 * len(ahead), np.uint64).astype(np.uint64).reshape(2, -1)
    keys[1] |= np.uint64(1)
    return CoupledPairs(keys, ahead, behind, np.full(len(ahead), -1, dtype=np.int64))

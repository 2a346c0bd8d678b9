"""Weighted mini-buckets in compiled code."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from spinbench.backends.numba.buckets import loops
from spinbench.backends.numba.simd import chain_keys
from spinbench.mathematics.graphs.factor_tables import starts_of
from spinbench.methods.buckets import kernel, lower_kernel, passes, size, tuning
from spinbench.methods.buckets.draws import BINS, DrawSums


class CompiledPasses(passes.Passes):
    """Both passes."""

    def forward(self, theta: passes.FloatArray, weights: passes.FloatArray) -> float:
        return float(loops.forward(self.at, theta, weights, self.work))

    def backward(self) -> tuple[passes.FloatArray, passes.FloatArray]:
        loops.backward(self.at, self.work)
        return self.work.shifts, self.work.entropies


class NumbaBucketKernel(kernel.BucketKernel):
    """As on arrays, with draws from streams of the chains' own."""

    code: ClassVar[tuning.Code] = tuning.Code(
        size.Costs(entry=8e-9, look=2e-9, clique=7e-7, made=1.2e-8, step=3.5e-8, row=5e-8),
        CompiledPasses,
    )
    compiles: ClassVar[bool] = True
    block: ClassVar[int] = 2**20

    def _draw(self, tuned: tuning.Tuned, state: kernel.BucketState, index: int, steps: int) -> DrawSums:
        chains = state.chains
        firsts = starts_of(tuned.at.cards - 1)
        source = loops.Source(tuned.at, tuned.point.weights, tuned.probabilities, tuned.logs, firsts)
        (logs, squares), (counts, sums) = np.zeros((2, chains)), np.zeros((2, BINS, chains))
        rows, states = np.zeros((int(firsts[-1]), chains)), np.zeros((len(firsts) - 1, chains), dtype=np.int64)
        draws = DrawSums(logs, squares, rows, counts, sums, states, np.zeros(chains))
        loops.advance(source, chain_keys(state.seed, chains), index, steps, draws)
        return draws


class NumbaLowerKernel(lower_kernel.LowerKernel):
    """The same in compiled code."""

    compiles: ClassVar[bool] = True
    code: ClassVar[tuning.Code] = NumbaBucketKernel.code

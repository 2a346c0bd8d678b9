"""Bucket elimination in compiled code: plain sums, or logarithms where those may underflow; independent samples."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from spinbench.backends.numba.exact import tree_kernels
from spinbench.backends.numba.exact.bucket_kernels import LEAD, REACH, SOURCE, Numbers, Work, prepare
from spinbench.backends.numba.exact.buckets import CALLED, ONCE, Plan, Sizes, make_plan
from spinbench.backends.numba.exact.tree_kernels import Beliefs
from spinbench.backends.numba.kernel_cache import njit
from spinbench.foundation.interruptions import run_interruptibly
from spinbench.reference.elimination.bucket_tree import BucketTree, Elimination
from spinbench.reference.network import FloatArray, IntArray
from spinbench.reference.orders.order import Order
from spinbench.reference.orders.plan import place_messages
from spinbench.reference.problem import Problem
from spinbench.reference.solver import PrecisionError, Solver, ZeroWeightError

# Samples that are drawn at once have this many states: 32 MB of int64.
_SAMPLES = 2**22
# Answers that are predicted to take longer (seconds) can be interrupted before they are complete.
_LONG = 0.3
# Number of message entries from which reuse of memory saves more time than planning it takes.
_REUSED = 2**20


class CompiledTree(Elimination):
    """In compiled code, no table stored."""

    backend = "numba"
    # Seconds from which the choice between solvers predicts the time: per entry of a clique table with marginals, per
    # message and per variable; share of the time for log Z alone. On 17 models measured over predicted time is 0.5 to
    # 2.23, median 1.2; on linkage models of UAI-2014 an entry takes 6.1 to 9.6 ns (Numba 0.68, a Xeon).
    entry_seconds, message_seconds, variable_seconds, log_z_share = 5e-9, 5.5e-9, 1.4e-6, 0.3

    def __init__(self, problem: Problem, order: Order) -> None:
        super().__init__(problem, order)
        # An array, since compiled code cannot watch a Python attribute.
        self.stop = np.zeros(1, dtype=np.uint8)

    def _plan(self) -> None:
        self.flat = self.problem.flat

    @cached_property
    def _layout(self) -> tuple[Plan, Sizes, FloatArray]:
        """The plan, what is largest in it, and the entries of messages."""
        return make_plan(self.flat, self.order)

    @cached_property
    def _live(self) -> tuple[IntArray, int]:
        """Offsets of messages that share places, as for log Z alone, and the entries of tables and messages."""
        plan, _, message = self._layout
        tables = plan.start.size - 1 - message.size
        if message.sum() < _REUSED:
            return plan.offset, int(plan.offset[-1])
        begin, end = plan.start[tables:-1], plan.start[tables + 1 :]
        parents = np.where(end > begin, plan.scope[np.minimum(begin, plan.scope.size - 1)], -1)
        offsets, length = place_messages(message.astype(np.int64).tolist(), parents.tolist())
        values = int(self.flat.offset[-1])
        return np.concatenate([self.flat.offset[:-1], values + np.array([*offsets, length])]), values + length

    def predict_seconds(self, *, marginals: bool) -> float:
        """By the entries of cliques, messages and the model's tables."""
        values = int(self.flat.offset[-1]) if self.planned else 0
        return super().predict_seconds(marginals=marginals) + self.value_seconds * values

    def _memory(self, marginals: bool) -> int:
        """Messages that are held at once, for marginals all of them, too; and room for a bucket at work."""
        plan, sizes, _ = self._layout
        values = int(self.flat.offset[-1])
        stored = self._live[1] - values + (int(plan.offset[-1]) - values if marginals else 0)
        work = sizes.pieces * (sizes.axes + 6) + (sizes.patterns + 2 * sizes.states + 3) * sizes.block
        return 8 * (4 * values + stored + work + 8 * len(plan.start) + len(plan.scope) + 3 * sizes.axes)

    def fallbacks(self) -> Iterator[Solver]:
        """The same elimination in logarithms, and over what zeros leave possible."""
        yield BucketTree(self.problem, self.order)
        yield from super().fallbacks()

    def _forward(self, *, keep: bool) -> tuple[float, tuple[Plan, Numbers, Work]]:
        """log Z, and what the kernels take; unless messages are kept, they share places.

        Raises:
            PrecisionError: plain sums might underflow.
        """
        n = self.flat.states.size
        values, reach, shift_sum = self.flat.linear()
        plan, sizes, _ = self._layout
        if not keep:
            plan = plan._replace(offset=self._live[0])
        store = self.empty("store", int(plan.offset[-1]))
        store[: values.size] = values
        work = Work(
            axis=np.empty(n, dtype=np.int64),
            card=np.empty(sizes.axes, dtype=np.int64),
            piece=np.empty((sizes.pieces, 6), dtype=np.int64),
            stride=np.empty((sizes.pieces, sizes.axes), dtype=np.int64),
            pattern=np.empty((sizes.patterns, sizes.block), dtype=np.uint64),
            offsets=np.empty(sizes.block, dtype=np.uint64),
            base=np.empty(sizes.states * sizes.block),
            block=np.empty(sizes.block),
            digit=np.empty(sizes.axes, dtype=np.int64),
        )
        shared = plan, Numbers(store, np.concatenate([reach, np.empty(n)]), np.empty(n)), work
        log_z: float = tree_kernels.forward(*shared, self.stop)
        if log_z == -math.inf:
            raise ZeroWeightError
        if math.isnan(log_z):
            raise PrecisionError("its factors are too strong for plain sums in float64")
        return log_z + shift_sum + self.flat.constant, shared

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """Forward over all buckets, and back for marginals; an interrupt ends it at once where it takes long."""
        # Python delivers interrupts to the main thread only.
        in_main = threading.current_thread() is threading.main_thread()
        if not in_main or self.predict_seconds(marginals=marginals) < _LONG:
            return self._solve(marginals=marginals)
        return run_interruptibly(lambda: self._solve(marginals=marginals), self.interrupt)

    def interrupt(self) -> None:
        self.stop[0] = 1

    def _solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        log_z, shared = self._forward(keep=marginals)
        if not marginals:
            return log_z, None
        sizes = self._layout[1]
        end = np.cumsum(self.flat.states)
        flat = np.empty(int(self.flat.states.sum()))
        # The backward pass needs the messages at the mirrored times, so that memory can be shared as for log Z.
        offsets, length = self._live
        values = int(self.flat.offset[-1])
        prior, place = self.empty("prior", length - values), offsets[-1 - len(end) : -1] - values
        at = (end - self.flat.states)[self.order.order]
        beliefs = Beliefs(prior, place, np.empty(sizes.block), np.empty(sizes.states * sizes.block), flat, at)
        tree_kernels.backward(*shared, beliefs, self.stop)
        return log_z, flat

    def sample(self, count: int, rng: np.random.Generator) -> IntArray:
        """Each variable given those eliminated after it, many draws at a time."""
        n = self.flat.states.size
        states = np.empty((count, n), dtype=np.int64)
        _, shared = self._forward(keep=True)
        chunk = max(1, min(count, _SAMPLES // max(n, 1), 512))
        weights = np.empty((int(self.flat.states.max(initial=0)), chunk))
        for begin in range(0, count, chunk):
            many = min(chunk, count - begin)
            samples = np.empty((n, many), dtype=np.int64)
            draw(*shared, rng.random((n, many)), weights, samples)
            states[begin : begin + many, self.order.order] = samples.T
        return states


@njit(**CALLED)
def draw(plan, numbers, work, uniforms, weights, samples):
    """Samples, once `tree_kernels.forward` has left its messages: each variable given those eliminated after it.

    Args:
        uniforms: (n, M) in [0, 1).
        weights: (K, M) work.
        samples: (n, M) int64 states by position, filled from the last.
    """
    for p in range(plan.states.size - 1, -1, -1):
        axes, pieces = prepare(p, plan, work)
        _weigh(p, axes, pieces, plan, numbers, work, weights, samples)
        _choose(work.card[0], uniforms[p], weights, samples[p])


@njit(**ONCE)
def _weigh(p, axes, pieces, plan, numbers, work, weights, samples):
    """Weights of the states of bucket p in each of M samples."""
    # One less than the start, so that scope[first + a] is axis a, numbered from 1.
    first = plan.start[plan.start.size - 1 - plan.states.size + p] - 1
    states, stride, bound = work.card[0], work.stride, 0.0
    weights[:states] = 1.0
    for q in range(pieces):
        reach = numbers.reach[plan.piece[plan.bucket[p] + q]]
        # As in `make_base`: weights are rescaled to 1 only if their product might leave float64's range.
        far = bound + reach > REACH
        for m in range(samples.shape[1]):
            at = work.piece[q, SOURCE]
            for a in range(work.piece[q, LEAD], axes):
                if stride[q, a]:
                    at += stride[q, a] * samples[plan.scope[first + a], m]
            peak = 0.0
            for x in range(states):
                peak = max(peak, weights[x, m])
            scale = 1.0 / peak if far else 1.0
            for x in range(states):
                weights[x, m] *= scale * numbers.store[at + x * stride[q, 0]]
        bound = reach if far else bound + reach


@njit(**ONCE)
def _choose(states, uniforms, weights, samples):
    """One state for each sample, in proportion to its weights (K, M)."""
    for m in range(samples.size):
        total = 0.0
        for x in range(states):
            total += weights[x, m]
        left = uniforms[m] * total
        chosen = -1
        for x in range(states):
            # Rounding must not reach a state of weight zero.
            if weights[x, m] > 0:
                chosen = x
                left -= weights[x, m]
                if left < 0:
                    break
        samples[m] = chosen

"""Independent samples by compiled bucket elimination."""

from __future__ import annotations

from spinbench.backends.numba.exact.bucket_kernels import LEAD, SOURCE, prepare
from spinbench.backends.numba.exact.options import CALLED, ONCE
from spinbench.backends.numba.kernel_cache import njit


@njit(**CALLED)
def draw(plan, numbers, work, uniforms, weights, drawn):
    """Samples, once `tree_kernels.forward` has left its messages: each variable given those eliminated after it.

    Args:
        uniforms: (n, M) in [0, 1).
        weights: (K, M) work.
        drawn: (n, M) int64 states by position, filled from the last.
    """
    for p in range(plan.states.size - 1, -1, -1):
        axes, pieces, _, _ = prepare(p, plan, numbers, work)
        _weigh(p, axes, pieces, plan, numbers.store, work, weights, drawn)
        _choose(work.card[0], uniforms[p], weights, drawn[p])


@njit(**ONCE)
def _weigh(p, axes, pieces, plan, store, work, weights, drawn):
    """Weights of the states of bucket p in each of M samples."""
    first = plan.start[plan.start.size - 1 - plan.states.size + p] - 1  # so that scope[first + a] is axis a
    card, piece, stride = work.card, work.piece, work.stride
    count = drawn.shape[1]
    for x in range(card[0]):
        for m in range(count):
            weights[x, m] = work.small[x]
        for a in range(1, axes):
            u, row = plan.scope[first + a], work.small[work.small_at[a] + x * card[a] :]
            for m in range(count):
                weights[x, m] *= row[drawn[u, m]]
        for q in range(pieces):
            for m in range(count):
                at = piece[q, SOURCE] + x * stride[q, 0]
                for a in range(piece[q, LEAD], axes):
                    if stride[q, a]:
                        at += stride[q, a] * drawn[plan.scope[first + a], m]
                weights[x, m] *= store[at]


@njit(**ONCE)
def _choose(states, uniforms, weights, drawn):
    """One state for each sample, in proportion to its weights (K, M)."""
    for m in range(drawn.size):
        total = 0.0
        for x in range(states):
            total += weights[x, m]
        left = uniforms[m] * total
        chosen = -1
        for x in range(states):
            if weights[x, m] > 0:  # rounding must not reach a state of weight zero
                chosen = x
                left -= weights[x, m]
                if left < 0:
                    break
        drawn[m] = chosen

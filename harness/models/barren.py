"""Variables whose only factor sums over them to a constant: both fall away, and a conditional remains."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spinbench.models.conditionals import Conditional
from spinbench.models.factor_graph import Factor

FloatArray = npt.NDArray[np.float64]

ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""By which logarithms of sums may differ, relative to their size and to the number of terms, and be constant."""


def sum_out(
    sizes: Sequence[int], factors: dict[int, Factor], given: int
) -> tuple[tuple[Conditional, ...], list[float], float]:
    """Takes out of `factors` those that fall away.

    Args:
        sizes: (N,) states of each variable; those of one state are no variables.
        factors: by any index; their tables are not constant.
        given: the most variables that another may be given.

    Returns:
        The conditionals of the variables that fell away, each after all that it is given, what they add to log Z, and
        by how much the sum of that may be off.
    """
    holding: dict[int, set[int]] = defaultdict(set)
    for index, factor in factors.items():
        for v in factor.scope:
            holding[v].add(index)
    queue = [v for v, size in enumerate(sizes) if size > 1 and len(holding[v]) <= 1] if given >= 0 else []
    found: list[Conditional] = []
    constants, rounding = [0.0], 0.0
    gone: set[int] = set()
    while queue:
        v = heapq.heappop(queue)
        if v in gone:
            continue
        only = next(iter(holding[v]), None)
        factor = Factor((v,), np.zeros(sizes[v])) if only is None else factors[only]
        summed = _summed(factor, v) if len(factor.scope) <= given + 1 else None
        if summed is None:
            continue
        conditional, size, off = summed
        found.append(conditional)
        gone.add(v)
        constants.append(size)
        rounding += off
        if only is not None:
            del factors[only]
            for u in conditional.given:
                holding[u].discard(only)
                if len(holding[u]) <= 1:
                    heapq.heappush(queue, u)
    return tuple(reversed(found)), constants, rounding


def _summed(factor: Factor, v: int) -> tuple[Conditional, float, float] | None:
    """p(x_v | others) of a factor, the logarithm of its sum over x_v, and by how much that may be off; None where it
    depends on the others."""
    axis = factor.scope.index(v)
    logs = np.moveaxis(factor.log_table, axis, -1)
    peak = logs.max(axis=-1, keepdims=True)
    if peak.min() == -np.inf:
        return None
    weights = np.exp(logs - peak)
    total = weights.sum(axis=-1, keepdims=True)
    sums = peak + np.log(total)
    low, high = float(sums.min()), float(sums.max())
    off = ROUNDING * (logs.shape[-1] + max(abs(low), abs(high), float(np.abs(peak).max())))
    if high - low > off:
        return None
    others = factor.scope[:axis] + factor.scope[axis + 1 :]
    return Conditional(v, others, weights / total), (low + high) / 2, off

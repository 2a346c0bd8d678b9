"""How large mini-buckets may be: as large as time and memory allow, but not so large that none is left for passes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from spinbench.methods.buckets.partition import Partition, Scope, partition

BYTES = 40
"""An entry: factors, conditionals and their logs, and maps to messages and shifts."""
PASSES = 60
"""That shifts of weight should have; more entries and fewer passes make the bound worse."""
LARGEST = 30
"""log2 of the entries of one mini-bucket, which int32 maps still hold."""
_FIRST = 2


class Costs(NamedTuple):
    """Seconds of this kind of code: an entry and pass, a mini-bucket and pass, and a draw's step in a mini-bucket."""

    entry: float
    clique: float
    step: float

    def of_pass(self, entries: float, cliques: int) -> float:
        """Of a forward and a backward pass."""
        return self.entry * entries + self.clique * cliques

    def of_draws(self, cliques: int, chains: int) -> float:
        """Of one draw of all chains."""
        return self.step * cliques * chains


def choose(
    logs: Sequence[float], scopes: Sequence[Scope], costs: Costs, seconds: float, max_bytes: float
) -> tuple[int, Partition]:
    """The largest limit whose passes end in time, and its partition.

    Args:
        logs, scopes: as of `partition`.
        costs: of the code that will run.
        seconds: for all passes; a partition that splits nothing needs one.
        max_bytes: of all tables.
    """
    best, found = _FIRST, partition(logs, scopes, _FIRST)
    for limit in range(_FIRST + 1, LARGEST + 1):
        if not found.split:
            break
        most = min(seconds / costs.entry, max_bytes / BYTES)
        larger = partition(logs, scopes, limit, most)
        passes = PASSES if larger.split else 1
        if larger.entries <= most and costs.of_pass(larger.entries, len(larger.scopes)) * passes <= seconds:
            best, found = limit, larger
    return best, found


def logs_of(cards: Sequence[int]) -> list[float]:
    """log2 of numbers of states."""
    return [math.log2(card) for card in cards]

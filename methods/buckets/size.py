"""How large mini-buckets may be: as large as time and memory allow, but not so large that none is left for passes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from spinbench.methods.buckets.partition import Partition, Scope, partition

BYTES = 40
"""An entry: factors, conditionals and their logs, and maps to messages and shifts."""
PASSES = 80
"""That shifts of weight should have; more entries and fewer passes make the bound worse."""
LARGEST = 30
"""log2 of the entries of one mini-bucket, which int32 maps still hold."""
_FIRST = 2


class Costs(NamedTuple):
    """Seconds of this kind of code: an entry and pass, a mini-bucket and pass, a draw's step in a mini-bucket, and a
    row of possible states."""

    entry: float
    clique: float
    step: float
    row: float

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
    most = min(seconds / costs.entry, max_bytes / BYTES)
    whole = partition(logs, scopes, math.inf, most)
    if whole.entries <= most and costs.of_pass(whole.entries, len(whole.scopes)) <= seconds:
        return math.ceil(max((sum(logs[v] for v in scope) for scope in whole.scopes), default=0.0)), whole

    def at(limit: int) -> Partition | None:
        found = partition(logs, scopes, limit, most)
        fits = costs.of_pass(found.entries, len(found.scopes)) * PASSES <= seconds
        return found if fits and found.entries <= most else None

    limit = min(max(_FIRST, int(math.log2(max(most / (PASSES * max(len(logs), 1)), 1.0)))), LARGEST)
    found = at(limit)
    while found is None and limit > _FIRST:
        limit -= 1
        found = at(limit)
    while found is not None and limit < LARGEST and (larger := at(limit + 1)) is not None:
        limit, found = limit + 1, larger
    return limit, partition(logs, scopes, limit) if found is None else found


def logs_of(cards: Sequence[int]) -> list[float]:
    """log2 of numbers of states."""
    return [math.log2(card) for card in cards]

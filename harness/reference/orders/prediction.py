"""What the search for an elimination order takes, as the order tells: the same figure on every machine."""

from __future__ import annotations

import math

from spinbench.reference.orders.order import (
    ENTRY_BYTES,
    ENTRY_SECONDS,
    FIRST_PORTFOLIO,
    HOPELESS_SECONDS,
    OUT_OF_REACH,
    SEARCH_SHARE,
    SEARCHABLE,
    TRIES,
    WORTH_TRIES,
    Order,
    entries_within_reach,
)

# Seconds per variable of the first order and of each of the `TRIES`, with their plans and costs.
FIRST_SECONDS, TRY_ORDER_SECONDS = 1.5e-5, 5e-6


def predict_search_seconds(order: Order, limit: float, max_bytes: float = math.inf) -> float:
    """Of finding such an order where the clocked search may take `limit` seconds, and elimination is sliced beyond
    `max_bytes`; within a factor of 4 on 40 models of UAI-2014."""
    first = FIRST_SECONDS * len(order.order)
    if ENTRY_SECONDS * order.entries < WORTH_TRIES or order.log2_total > OUT_OF_REACH:
        return first
    if order.entries > entries_within_reach(limit):
        limit = min(limit, HOPELESS_SECONDS if order.log2_total < SEARCHABLE else 0.0)
    excess = max(1.0, ENTRY_BYTES * order.entries / max_bytes)
    clocked = FIRST_PORTFOLIO + SEARCH_SHARE * ENTRY_SECONDS * order.entries * excess**2
    return first + TRIES * TRY_ORDER_SECONDS * len(order.order) + min(clocked, limit)

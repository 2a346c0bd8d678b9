"""Host tables for programs that pass messages, or ascend coordinate by coordinate, on models of any order.

`lower(model)` gives a `Graph` whose messages are finite, whatever zeros the model has; `incidence` says which messages
reach which variable, `ascent` which variables can be updated together, and `marginals` leads back to the model.
"""

from __future__ import annotations

from spinbench.mathematics.graphs.ascent_layouts import Ascent, Entries, Neighbours, ascent
from spinbench.mathematics.graphs.feasible_starts import feasible_states
from spinbench.mathematics.graphs.lowering import lower
from spinbench.mathematics.graphs.message_layouts import Graph, Group, Incidence, Pairs, incidence, marginals, scopes

__all__ = [
    "Ascent",
    "Entries",
    "Graph",
    "Group",
    "Incidence",
    "Neighbours",
    "Pairs",
    "ascent",
    "feasible_states",
    "incidence",
    "lower",
    "marginals",
    "scopes",
]

"""How methods and backends are drawn: a colour and a filling, a line and a marker, the same in every sweep and picture.

The colours are those of Okabe and Ito, which the colour-blind tell apart; methods that share a colour differ in the
filling of their markers.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spinbench.reporting import drawing

if TYPE_CHECKING:
    from spinbench.reporting.leaderboard import Row

METHODS = (
    *("gibbs", "dhmc", "block_gibbs", "bp", "exact", "pt"),
    *("blocks", "mf", "smc", "trw", "swendsen_wang", "wmb"),
    *("metropolis", "g_mf", "g_bp", "nuts", "wmb_lower", "forney_mf"),
    *("importance", "cftp", "mala", "nested", "gaussian_bound", "zanella"),
    *("multicanonical", "g_bp_single", "g_bp_multiple", "g_bp_sequential", "tempered_transitions", "rejection"),
    "elliptical_slice",
)
"""In the order of their looks: those that are compared most often differ in colour, not in fillings alone."""
BACKENDS = (
    *("numba", "numpy", "jax", "torch", "dwave", "blackjax", "numpyro", "openjij", "pgmax", "pgmpy"),
    *("pyagrum", "pygms", "thrml", "cotengra", "ganak", "merlin", "libdai", "toulbar2", "cupy"),
)
METHOD_LOOKS = tuple(itertools.product(drawing.FILLS, drawing.COLOURS))
BACKEND_LOOKS = tuple(
    (drawing.LINES[i % len(drawing.LINES)], drawing.MARKERS[i % len(drawing.MARKERS)])
    for i in range(len(drawing.LINES) * len(drawing.MARKERS))
)


@dataclass(frozen=True)
class Looks:
    """Colour and filling tell the method, line and marker the backend; the same in all panels of a report."""

    colours: dict[str, str]
    fills: dict[str, str]
    lines: dict[str, tuple[Any, str]]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Looks:
        """For all methods and backends of a leaderboard."""
        board = list(rows)
        methods = places({row.method for row in board}, METHODS, len(METHOD_LOOKS))
        backends = places({row.backend for row in board}, BACKENDS, len(BACKEND_LOOKS))
        return cls(
            {method: METHOD_LOOKS[place][1] for method, place in methods.items()},
            {method: METHOD_LOOKS[place][0] for method, place in methods.items()},
            {backend: BACKEND_LOOKS[place] for backend, place in backends.items()},
        )


def colour(method: str) -> str:
    """Of a method that stands beside no other."""
    return METHOD_LOOKS[places([method], METHODS, len(METHOD_LOOKS))[method]][1]


def places(names: Iterable[str], known: Sequence[str], count: int) -> dict[str, int]:
    """The place of each name among so many looks, in alphabetical order.

    Those that are known have places of their own. A plugin's follows from its name; where another has it already, the
    next free one is taken, and looks are shared only where there are more names than looks.
    """
    ordered = sorted(set(names))
    found = {name: known.index(name) for name in ordered if name in known}
    for name in ordered:
        if name not in found:
            first, taken = zlib.crc32(name.encode()) % count, set(found.values())
            found[name] = next((i % count for i in range(first, first + count) if i % count not in taken), first)
    return {name: found[name] for name in ordered}

"""Mean field below log Z, and trees above it."""

from __future__ import annotations

from collections.abc import Iterator

from spinbench.api.bounds import BoundRequest, Finding, MethodBounds
from spinbench.methods.messages.mf import MeanField
from spinbench.methods.messages.trw import TreeReweighted

# Sweeps of a quick bound, which mean field is before it has converged, too: after 20 it was within 1e-5 nats of its
# limit on grids, regular graphs and three networks of UAI 2014.
QUICK_SWEEPS = 30


class MeanFieldBounds(MethodBounds):
    """A lower bound, which holds after any number of sweeps."""

    name = MeanField.name
    share, order = 0.05, 20

    def find_quickly(self, request: BoundRequest) -> Iterator[Finding]:
        yield request.run(self.name, QUICK_SWEEPS, "numpy")


class TreeBounds(MethodBounds):
    """An upper bound."""

    name = TreeReweighted.name
    share, order = 0.04, 50

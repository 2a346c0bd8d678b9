"""Points in the sets of states above a level of D = log p*: what nested sampling draws, sweeps and copies.

A chain is a population of P points; its columns in arrays (…, P C) are those of the other chains beside it.
"""

from __future__ import annotations

from typing import NamedTuple

from spinbench.api import Array, Key, Namespace
from spinbench.mathematics.graphs.table_layouts import TableSweep
from spinbench.mathematics.heat_bath.table_updates import LevelWeights
from spinbench.methods.chain_program import TableProgram
from spinbench.methods.population.program import resample_systematically

# Each state's D gets a uniform label of this width in nats: the many states of one D, common in discrete models, then
# do not fall below a level all at once (Murray et al. 2005).
LABEL_NATS = 1.0
# Below all levels; finite, since differences from -∞ would be NaN.
LOWEST_LEVEL = -1e30


class Tables(NamedTuple):
    """What `NestedSampling.plan` prepares.

    Attributes:
        levels: (T,) ascending, the first `LOWEST_LEVEL`.
        points: (P,) 0, for its length.
        sizes: (N,) states of the variables; sweep: with single variables.
        variables, states: (R,) int32, what is reported.
        base: () log Z at β = 0, and what is added to every log weight; information: () H, as the pilot saw it.
    """

    levels: Array
    points: Array
    sizes: Array
    sweep: TableSweep
    variables: Array
    states: Array
    base: Array
    information: Array


class Points(NamedTuple):
    """On their way. Attributes: x (N, P C) int32; d (P C,) D; log_x (C,) log of the share of states that is left."""

    x: Array
    d: Array
    log_x: Array


class Shells(TableProgram):
    """What climbs are made of."""

    def draw_points(self, key: Key, t: Tables, shape: tuple[int, int]) -> Points:
        """Independent draws at β = 0."""
        x = self.uniform_states(key, t.sizes, shape[0] * shape[1])
        d = self.log_weights(t.sweep.entries, x)
        return Points(x, d, 0 * d[: shape[1]])

    def sweep(self, key: Key, t: Tables, points: Points, level: Array) -> Points:
        """Each variable once, given the rest, by the room that its states leave labels above the level."""
        ends = self._xp.asarray([0.0, 1.0], dtype=points.d.dtype)
        weights = LevelWeights(level - LABEL_NATS, LABEL_NATS + 0.0 * level, ends, 0.0, logs=False)
        d = self.log_weights(t.sweep.entries, points.x)
        x, d = self._bath.sweep_by_level(key, t.sweep, points.x, d, weights)
        return points._replace(x=x, d=d)

    def surviving_share(self, d: Array, previous_level: Array, level: Array) -> Array:
        """(P C,) of points above `previous_level`: the share of their labels above it that is above `level`, too."""
        share_before = label_share_above(self._xp, d, previous_level)
        # The share can only be 0 by rounding: every point lies above the previous level.
        has_room = share_before > 0
        share = label_share_above(self._xp, d, level)
        return self._xp.where(has_room, share / self._xp.where(has_room, share_before, 1.0), 0.0)

    def resample_points(self, key: Key, points: Points, surviving_share: Array) -> Points:
        """As many points as before, drawn from those that are left."""
        xp, chains = self._xp, points.log_x.shape[0]
        surviving_share = xp.reshape(surviving_share, (-1, chains))
        mean = xp.mean(surviving_share, axis=0)
        # If no point is left, any point may be copied: the weight of the copies is 0.
        weights = xp.where(mean > 0, surviving_share, 1.0)
        parents = resample_systematically(
            self._backend, self._backend.uniform(key, (chains,)), weights / xp.sum(weights, axis=0)
        )
        places = xp.reshape(parents * chains + xp.arange(chains, dtype=xp.int32), (-1,))
        log_survival = xp.where(mean > 0, xp.log(xp.where(mean > 0, mean, 1.0)), -xp.inf)
        x, d = xp.take(points.x, places, axis=1), self._backend.take(points.d, places)
        return Points(x, d, points.log_x + log_survival)

    def exact_log_weights(self, t: Tables, x: Array) -> Array:
        """(P C,) D, -inf where a state meets a hard zero."""
        return self._bath.log_weights(t.sweep.entries, x)


def label_share_above(xp: Namespace, d: Array, level: Array) -> Array:
    """The share of labels with which D and the label are above the level."""
    share = (d + LABEL_NATS - level) / LABEL_NATS
    return xp.where(share > 1, xp.ones_like(d), xp.where(share > 0, share, xp.zeros_like(d)))

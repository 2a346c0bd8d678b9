"""The barrier ascents of G-BP and G-MF in JAX, for many models of one graph at a time.

A member of a batch is one model, labelling, start or conditioned model. In a pass each member does one thing at its own
place in the schedule: it looks at one point of its line search and, if that will do, at the Hessian there. So no member
waits for the line searches of others, and those that are through leave their place to the next. Hessians are dense.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.api import Backend
from spinbench.backends.jax import JaxBackend
from spinbench.backends.jax.gauge.lanes import Lanes
from spinbench.backends.jax.gauge.members import AGAIN, FRESH, TRIAL, Members, Place, Schedule, Structure, members_last
from spinbench.foundation.trees import map_arrays
from spinbench.methods.gauge.ascent import newton as rules

FloatArray = npt.NDArray[np.float64]

FIRST_SHIFT, RISE = 1e-3, 10.0
"""λ of the Hessian at first, and its growth where that is too little."""
SHORTEST = 0.5**5
"""Of a step; where it gains nothing either, another direction with a larger λ costs less than still shorter steps."""
PASSES, WIDTHS = 8, {"cpu": 8, "gpu": 2**30}
"""Members at a time, by device, that go through so many passes; then those that are through are replaced. A core does
no more in a second for more of them."""


class Ascent:
    """Compiled steps for one graph.

    Args:
        structure: of all members.
        joint: G-MF (angles and logits) instead of G-BP (angles).
        backend: of JAX, in float64.
    """

    def __init__(self, structure: Structure, joint: bool, backend: Backend) -> None:
        import jax

        self._jax, self._xp = jax, backend.xp
        self._lanes = Lanes(structure, joint, jax)
        self._to_host, self._block = backend.to_host, WIDTHS[backend.device]
        self._advance = backend.compile(self._run)

    def start(self, z: npt.ArrayLike, members: Members) -> Place:
        """All members at z (M, size), at the start of the schedule."""
        points = np.asarray(z, dtype=np.float64).T
        m = points.shape[1]
        none, zero = np.zeros(m, dtype=np.int32), np.zeros(m)
        return Place(
            z=points,
            tables=tuple(np.zeros_like(table) for table in members_last(members).tables),
            value=zero,
            slope=zero,
            move=np.zeros_like(points),
            length=np.ones(m),
            phase=np.full(m, FRESH, dtype=np.int32),
            stage=none,
            steps=none,
            flat=none,
            shift=np.full(m, FIRST_SHIFT),
            residual=np.full(m, 1e300),
            end=none,
            mark=zero,
        )

    def advance(self, members: Members, schedule: Schedule, place: Place, passes: int) -> tuple[int, Place]:
        """At most so many passes, fewer where all members are through: their number, and where members stand then."""
        taken, found = self._advance(members_last(members), schedule, place, passes)
        return int(taken), map_arrays(self._to_host, found)

    def _run(self, members: Members, schedule: Schedule, place: Place, passes: Any) -> Any:
        lax, xp, tree = self._jax.lax, self._xp, self._jax.tree_util
        block = min(self._block, len(place.stage))

        def going(carry: tuple[Any, Place]) -> Any:
            return (carry[0] < passes) & xp.any(carry[1].stage < schedule.count)

        def some(carry: tuple[Any, Place]) -> tuple[Any, Place]:
            taken, everyone = carry
            chosen = xp.argsort(everyone.stage >= schedule.count, stable=True)[:block]
            mine, here = tree.tree_map(lambda part: part[..., chosen], (members, everyone))
            last = xp.minimum(taken + PASSES, passes)
            taken, here = lax.while_loop(
                lambda c: going(c) & (c[0] < last),
                lambda c: (c[0] + 1, self._pass(mine, schedule, c[1])),
                (taken, here),
            )
            return taken, tree.tree_map(lambda old, new: old.at[..., chosen].set(new), everyone, here)

        return lax.while_loop(going, some, (0, place))

    def _pass(self, members: Members, schedule: Schedule, place: Place) -> Place:
        """The rules of `spinbench.methods.gauge.ascent.newton`, a point of the line search at a time."""
        xp = self._xp
        entry = schedule.entries[xp.minimum(place.stage, schedule.count - 1)]
        conditioning, weight, tolerance, limit, patience = entry.T
        trial = place.phase == TRIAL
        z = place.z + xp.where(trial, place.length, 0.0) * place.move
        at = self._lanes.gauged(z, members)
        floors = [xp.where(trial, rules.KEPT * table, 0.0) for table in place.tables]
        value = self._lanes.value(z, at, members, conditioning, weight, floors)
        taken = trial & (value >= place.value + rules.SUFFICIENT * place.length * place.slope)
        given_up = trial & ~taken & (place.length < SHORTEST)
        here = taken | ~trial
        steps = place.steps + (taken | given_up)
        gained = value - place.value >= rules.FLAT * (1.0 + xp.abs(value))
        flat = xp.where(taken, xp.where(gained, 0, place.flat + 1), xp.where(given_up, 0, place.flat))
        shift = xp.where(taken & (place.length == 1.0), xp.maximum(0.2 * place.shift, 1e-12), place.shift)
        shift = xp.where(taken & (place.length < 0.2), xp.minimum(4.0 * place.shift, 1e6), shift)
        shift = xp.where(given_up, 100.0 * place.shift, shift)

        gradient, hessian = self._lanes.derivatives(z, at, members, conditioning, weight)
        free = self._lanes.free(z, gradient, members.free)
        good = xp.isfinite(value) & xp.isfinite(gradient).all(axis=0) & xp.isfinite(hessian).all(axis=(0, 1))
        gradient = xp.where(good, gradient * free, 0.0)
        residual = xp.abs(gradient).max(axis=0)
        sound, move = self._lanes.direction(xp.where(good, hessian, 0.0), gradient, free, shift)
        move = move / xp.maximum(1.0, (xp.abs(move) / self._lanes.steps).max(axis=0))

        now = xp.where(here, value, place.value)
        looked = (taken | given_up | (place.phase == FRESH)) & (steps % rules.SLOW_STEPS == 0)
        slow = looked & (steps >= patience) & (now - place.mark < rules.SLOW * (1.0 + xp.abs(now)))
        reasons = {
            "flat": taken & (flat >= rules.FLAT_STEPS),
            "slow": slow,
            "stalled": (here & ~good) | (given_up & (shift > 1e8)),
            "gradient": here & (residual < tolerance),
            "limit": here & (steps >= limit),
        }
        end = xp.select(list(reasons.values()), [rules.ENDS.index(reason) for reason in reasons], 0)
        ended = end > 0
        going_on = here & sound & ~ended
        phase = xp.where(going_on, TRIAL, xp.where(trial & ~here & ~given_up, TRIAL, AGAIN))
        higher = xp.where(here & ~sound, xp.maximum(RISE * shift, 1e-6), shift)
        fresh = Place(
            z=xp.where(here, z, place.z),
            tables=tuple(xp.where(here, new, old) for new, old in zip(at.tables, place.tables, strict=True)),
            value=now,
            slope=xp.where(here, (gradient * move).sum(axis=0), place.slope),
            move=xp.where(here, move, place.move),
            length=xp.where(here, 1.0, self._lanes.share(place.tables, at, members, floors) * place.length),
            phase=xp.where(ended, FRESH, phase),
            stage=place.stage + ended,
            steps=xp.where(ended, 0, steps),
            flat=xp.where(ended, 0, flat),
            shift=xp.where(ended, FIRST_SHIFT, higher),
            residual=xp.where(here & good, residual, place.residual),
            end=xp.where(ended, end, place.end),
            mark=xp.where(looked, now, place.mark),
        )
        running = place.stage < schedule.count
        tree_map = self._jax.tree_util.tree_map
        return Place(*tree_map(lambda new, old: xp.where(running, new, old).astype(old.dtype), fresh, place))


@lru_cache(maxsize=32)
def ascent(structure: Structure, joint: bool, device: str) -> Ascent:
    """The compiled steps of a graph, kept from one call to the next."""
    return Ascent(structure, joint, JaxBackend(precision="float64", device=device))

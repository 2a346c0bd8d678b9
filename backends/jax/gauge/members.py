"""Models of one graph side by side, and their schedules of maximisations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.methods.gauge.ascent.newton import Maximisation
from spinbench.models.forney.model import ForneyModel

FloatArray = npt.NDArray[np.float64]
Array = Any


class Structure(NamedTuple):
    """A graph, as a key: number of edges, and own half edges (n, d) of each degree group as nested tuples."""

    num_edges: int
    own: tuple[tuple[tuple[int, ...], ...], ...]


FRESH, TRIAL, AGAIN = 0, 1, 2
"""What a member does next: look at its point for the first time in this maximisation, at a point of its line search, or
at its point again, with a larger shift."""
LONGEST = 16
"""Maximisations of a schedule at most; it is filled up to so many, so that steps are compiled once."""


class Schedule(NamedTuple):
    """Maximisations, one after the other.

    Attributes:
        entries: (LONGEST, 5), each row a `Maximisation`.
        count: () how many of them count.
    """

    entries: Array
    count: Array


def schedule_of(maximisations: Sequence[Maximisation]) -> Schedule:
    """Of at most LONGEST maximisations."""
    rows = [*maximisations, *[maximisations[-1]] * (LONGEST - len(maximisations))]
    return Schedule(np.array(rows, dtype=np.float64), np.int32(len(maximisations)))


class Members(NamedTuple):
    """What differs from member to member; M members.

    Attributes:
        tables: (M, n, 2**d) a degree group.
        shares: (M, n, 2**d) weights that sum to 1 over the entries that count, 0 elsewhere (pinned edges at 1).
        free: (M, size) 0 for angles of pinned edges, which stay, else 1.
    """

    tables: tuple[Array, ...]
    shares: tuple[Array, ...]
    free: Array


class Place(NamedTuple):
    """Where each member stands; M on the last axis, see `spinbench.backends.jax.gauge.lanes`.

    Attributes:
        z: (size, M) angles (2E), then logits (E) for G-MF.
        tables: gauged ones at z, (2**d, n, M) a degree group; only in a line search.
        value, slope: of the objective at z, and along the move; only in a line search.
        move: (size, M) direction of the line search.
        length: the share of it that comes next.
        phase: `FRESH`, `TRIAL` or `AGAIN`.
        stage: entry of the schedule, its length once all is done.
        steps, flat: taken in this stage, and those in a row that gained nothing.
        shift: λ of the Hessian.
        residual: of the gradient at the last step's start.
        end: why the last stage that ended did so, an index into `ENDS`.
        mark: the value when slow progress was looked for last.
    """

    z: Array
    tables: tuple[Array, ...]
    value: Array
    slope: Array
    move: Array
    length: Array
    phase: Array
    stage: Array
    steps: Array
    flat: Array
    shift: Array
    residual: Array
    end: Array
    mark: Array


def structure_of(model: ForneyModel) -> Structure:
    """The key of a model's graph."""
    return Structure(model.num_edges, tuple(tuple(map(tuple, g.own.tolist())) for g in model.groups))


def members_of(models: Sequence[ForneyModel]) -> Members:
    """Models of one structure, nothing pinned."""
    tables = tuple(np.stack(parts) for parts in zip(*([g.tables for g in m.groups] for m in models), strict=True))
    shares = tuple(np.full_like(t, 1.0 / t.shape[-1]) for t in tables)
    return Members(tables, shares, np.ones((len(models), 2 * models[0].num_edges)))


def members_last(members: Members) -> Members:
    """The same with M on the last axis and entries on the first: tables and shares (2**d, n, M), free (size, M)."""
    tables, shares = (tuple(np.ascontiguousarray(part.T) for part in parts) for parts in members[:2])
    return Members(tables, shares, np.ascontiguousarray(members.free.T))

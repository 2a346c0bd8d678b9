"""The Numba kernel of DHMC: what a run needs, made on the host; `trajectories` has the compiled part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Kernel
from spinbench.backends.numba.relaxed.elimination import make_eliminated, two_colours
from spinbench.backends.numba.relaxed.gram import WIDEST_BAND, Gram, make_dense, make_sparse, noise_rows
from spinbench.backends.numba.relaxed.leapfrog import Leapfrog, make_precision, make_roots
from spinbench.backends.numba.relaxed.point import Frame, Point, Scratch
from spinbench.backends.numba.relaxed.step_size import COUNT, LOG_AVERAGE, STEP, restart
from spinbench.backends.numba.relaxed.tiles import NEVER, Layout
from spinbench.backends.numba.relaxed.trajectories import Chains, Seen, Settings, System, take_samples
from spinbench.backends.numba.relaxed.units import Groups, first_noise, make_groups
from spinbench.mathematics.relaxation.density import Relaxation
from spinbench.methods.relaxed import family
from spinbench.methods.relaxed.dhmc import DHMC
from spinbench.methods.relaxed.dhmc_tables import MAX_ANGLE, DHMCTables
from spinbench.models import PairwiseModel

Array = npt.NDArray[Any]


@dataclass
class DHMCState:
    """Where chains are, their keys, the counter of the next random number, and what belongs to their place.

    point: of all tiles; accept: the last acceptance probabilities (T, L); dual averaging (5,) float64; total: sums of p
    over the window, all tiles.
    """

    layout: Layout
    keys: npt.NDArray[np.uint64]
    counter: np.uint64
    factor: Leapfrog | Gram
    groups: Groups
    point: Point
    accept: Array
    dual: Array
    frame: Frame
    total: Array


class DHMCKernel(Kernel):
    """`spinbench.methods.relaxed.dhmc.DHMC` with the same law, adaptation and statistics as its program."""

    def __init__(self, method: DHMC, backend: Backend, model: PairwiseModel, tables: DHMCTables) -> None:
        self._real = np.dtype(backend.precision)
        self._method = method
        self._tables: Any = tables  # which of its matrices exist, the form decides
        self._settings = Settings(
            leaps=method.leapfrog_steps,
            jitter=method.relative_jitter,
            adapts=method.adapts,
            target=method.target_acceptance,
            limit=MAX_ANGLE if method.rotates else np.inf,
            zero_state=method.log_z == "zero_state",
        )
        self._gram = Relaxation(model, tables.d).gram if tables.precision is not None else None
        self._colours = two_colours(self._gram) if self._gram is not None else None

    def _make_factor(self, layout: Layout) -> Leapfrog | Gram:
        tables = self._tables
        if tables.edges is not None:
            return make_sparse(tables.edges, layout)
        if tables.gram is not None:
            return make_dense(tables.gram, tables.root, layout)
        if tables.precision is None:
            return make_roots(tables.root, layout)
        if self._colours is None or self._gram is None:
            return make_precision(tables.precision, layout)
        return Leapfrog(eliminated=make_eliminated(self._gram, tables.precision, self._colours, layout))

    def init(self, seed: int, start: npt.NDArray[np.int8]) -> DHMCState:
        """x ~ p(x|s) and all that follows from it are computed on the host, once."""
        (n, chains), s, tables = start.shape, start.astype(np.float64), self._tables
        order = np.arange(n) if self._colours is None else np.concatenate(self._colours)
        layout = Layout(chains, self._real, order, min(n, WIDEST_BAND) if tables.edges is not None else n)
        noise = first_noise(seed, n + (0 if tables.edges is None else tables.edges.weights.size), chains)
        if tables.edges is not None:
            position = family.edge_product(np, tables.edges, s, noise)
        elif tables.gram is not None:
            position = tables.gram @ s + tables.root @ noise
        else:
            position = tables.root.T @ s + noise
            position = position if tables.precision is None else tables.root @ position
        return DHMCState(
            layout=layout,
            keys=layout.keys(seed),
            counter=np.uint64(0),
            factor=self._make_factor(layout),
            groups=make_groups(tables.sites, layout),
            point=self._make_point(layout, position, m := np.full(n, 0.5)),
            accept=layout.energies(),
            dual=restart(float(tables.first_step)),
            frame=self._make_frame(layout, m),
            total=layout.zeros(),
        )

    def warm(self, state: DHMCState, steps: int) -> DHMCState:
        state.total += self._run(state, steps, warm=True).p
        return state

    def adapt(self, state: DHMCState, last: bool) -> DHMCState:
        layout, seen = state.layout, state.dual[COUNT] > 0
        settled = np.exp(state.dual[LOG_AVERAGE]) if seen and self._method.adapts else state.dual[STEP]
        if last:
            state.dual[STEP] = settled
        elif self._method.rotates:
            if seen:
                m = layout.gather(state.total).mean(axis=1) / state.dual[COUNT]
                state.frame = self._make_frame(layout, m)
                state.point = self._make_point(layout, layout.gather(state.point.position), m)
            state.dual, state.total = restart(settled), layout.zeros()
        return state

    def advance(self, state: DHMCState, steps: int) -> tuple[DHMCState, dict[str, Array]]:
        seen, layout = self._run(state, steps, warm=False), state.layout
        accept = layout.gather_energies(seen.accept)
        step_size = np.full_like(accept, state.dual[STEP])
        found = {"p": layout.gather(seen.p), "accept": accept, "step_size": step_size}
        if self._method.log_z == "zero_state":
            found["zero_state"] = layout.gather_energies(seen.zero_state)
        if self._method.log_z != "none":
            found["alpha"] = self._field(layout.gather(state.point.position))
        return state, found

    def _field(self, position: Array) -> Array:
        """(N, C): α of positions."""
        harmonium = not self._method.rotates and self._tables.precision is None
        return np.asarray(self._tables.root @ position if harmonium else position)

    def _product(self, v: Array) -> Array:
        """Qv, (N, C), for the rotating forms."""
        if self._tables.edges is not None:
            return np.asarray(family.edge_product(np, self._tables.edges, v))
        return np.asarray(self._tables.gram @ v)

    def _make_frame(self, layout: Layout, m: Array) -> Frame:
        b = self._tables.bias
        shift = self._product(m[:, None])[:, 0] if self._method.rotates else np.zeros_like(m)
        column = layout.column
        return Frame(column(b, NEVER), column(m), column(shift), column(shift + b, NEVER))

    def _make_point(self, layout: Layout, position: Array, m: Array) -> Point:
        """Everything at a position (N, C), in float64; see the two `travel`."""
        tables, x = self._tables, position.astype(self._real).astype(np.float64)
        u = self._field(x) + tables.bias[:, None]
        p = family.unit_means(np, tables.sites, u)
        normaliser = np.ascontiguousarray(family.log_normaliser(np, tables.sites, u))
        if self._method.rotates:
            push, gaussian = self._product(p - m[:, None]), m @ u
        else:
            Kx, Bp = (x, tables.root.T @ p) if tables.precision is None else (tables.precision @ x, p)
            push, gaussian = Kx - Bp, 0.5 * np.sum(x * Kx, axis=0)
        x, p, push = (layout.scatter(v) for v in (x, p, push))
        return Point(x, p, push, layout.spread_energies(gaussian - normaliser), layout.spread_energies(normaliser))

    def _run(self, state: DHMCState, steps: int, *, warm: bool) -> Seen:
        layout = state.layout
        seen = Seen(layout.zeros(), layout.energies(), layout.energies())
        seen.zero_state[:] = -np.inf
        rows = noise_rows(self._tables.edges, layout.n)
        u, velocity, work, position, p, push = (layout.tile() for _ in range(6))
        energy, potential, normaliser = np.zeros((3, layout.lanes))
        there = Point(position, p, push, potential, normaliser)
        counter = take_samples(
            System(state.factor, state.frame, state.groups, layout.n),
            self._settings,
            Chains(layout.chains, state.keys, state.point, state.accept, state.dual),
            Scratch(layout.tile(rows), rows, u, velocity, work, energy, there),
            *(seen, state.counter, warm, steps),
        )
        state.counter = np.uint64(counter)
        return seen

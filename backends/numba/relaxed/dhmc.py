"""DHMC in compiled code: whole batches of trajectories in one call, one tile of chains after the other (`tiles`).

What limits a sample: its products, one (A = I) or two (the harmonium) a leapfrog step, N sigmoids a step, and N normal
numbers. A tile's trajectory stays in the first-level cache.

The limit of a leapfrog step on a 10×10 grid, in cycles: the product (`elimination`) takes 240 fused multiplications and
additions of vectors for one chain in float32 and 420 in float64, two a cycle, and a sigmoid 11 and 16: 200 and 420. A
tile of chains takes 3000 and 100 sigmoids: 165 a chain in float32, 390 in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt
from numba.extending import overload

from spinbench.api import Backend, Kernel
from spinbench.backends.numba.relaxed import leapfrog, rotation
from spinbench.backends.numba.relaxed.elimination import make_eliminated, two_colours
from spinbench.backends.numba.relaxed.gram import (
    WIDEST_BAND,
    Gram,
    make_dense,
    make_sparse,
    noise_rows,
)
from spinbench.backends.numba.relaxed.leapfrog import ELIMINATED, PRECISION, ROOTS, Leapfrog, make_leapfrog
from spinbench.backends.numba.relaxed.point import Frame, Point, Scratch, add_energies, load_energies, move
from spinbench.backends.numba.relaxed.step_size import COUNT, LOG_AVERAGE, STEP, adapt, restart
from spinbench.backends.numba.relaxed.tiles import NEVER, Layout, lanes
from spinbench.backends.numba.relaxed.units import (
    KERNEL,
    Groups,
    add_log,
    add_to_sums,
    chain_uniforms,
    draw_noise,
    first_noise,
    make_groups,
)
from spinbench.backends.numba.simd.functions import at_most, exp
from spinbench.backends.numba.simd.memory import address
from spinbench.backends.numba.simd.vector_memory import store_sum_vector
from spinbench.backends.numba.simd.vector_sums import in_lanes
from spinbench.backends.numba.simd.vectors import choose
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
        self._limit = MAX_ANGLE if method.rotates else np.inf
        self._gram = Relaxation(model, tables.d).gram if tables.precision is not None else None
        self._colours = two_colours(self._gram) if self._gram is not None else None

    def _make_factor(self, layout: Layout) -> Leapfrog | Gram:
        tables = self._tables
        if tables.edges is not None:
            return make_sparse(tables.edges, layout)
        if tables.gram is not None:
            return make_dense(tables.gram, tables.root, layout)
        none = np.zeros((0, 0))
        if tables.precision is None:
            return make_leapfrog(ROOTS, layout, tables.root, tables.root.T, None)
        if self._colours is None or self._gram is None:
            return make_leapfrog(PRECISION, layout, tables.precision, none, None)
        eliminated = make_eliminated(self._gram, tables.precision, self._colours, layout)
        return make_leapfrog(ELIMINATED, layout, none, none, eliminated)

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
        state.total += self._run(state, steps, True)[0]
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
        sums, accepts, zero_state = self._run(state, steps, False)
        layout, accept = state.layout, state.layout.gather_energies(accepts)
        step_size = np.full_like(accept, state.dual[STEP])
        seen = {"p": layout.gather(sums), "accept": accept, "step_size": step_size}
        if self._method.log_z == "zero_state":
            seen["zero_state"] = layout.gather_energies(zero_state)
        elif self._method.log_z != "none":
            seen["alpha"] = self._field(layout.gather(state.point.position))
        return state, seen

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

    def _run(self, state: DHMCState, steps: int, warm: bool) -> tuple[Array, Array, Array]:
        layout, method = state.layout, self._method
        sums, accepts, zero_state = layout.zeros(), layout.energies(), layout.energies()
        zero_state[:] = -np.inf
        rows = noise_rows(self._tables.edges, layout.n)
        u, velocity, work, position, p, push = (layout.tile() for _ in range(6))
        energy, potential, normaliser = np.zeros((3, layout.lanes))
        scratch = Scratch(layout.tile(rows), rows, u, velocity, work, energy)
        counter = _steps(
            *(state.factor, state.frame, state.groups, layout.n, layout.chains, scratch, state.point),
            *(Point(position, p, push, potential, normaliser), state.keys, state.counter, state.accept, state.dual),
            *(warm, steps, method.leapfrog_steps, method.relative_jitter, method.adapts),
            *(method.target_acceptance, self._limit, method.log_z == "zero_state", sums, accepts, zero_state),
        )
        state.counter = np.uint64(counter)
        return sums, accepts, zero_state


def _travel(*arguments: Any) -> Any:
    raise NotImplementedError("compiled code only")


@overload(_travel, jit_options=KERNEL)
def _choose_travel(factor, frame, groups, n, scratch, leaps, size, here, there):
    """The factor's type decides which dynamics is compiled."""
    return leapfrog.travel if factor.instance_class is Leapfrog else rotation.travel


@nb.njit(cache=True, **KERNEL)
def _steps(
    factor, frame, groups, n, chains, scratch, points, there, keys, counter, accept, dual, warm, steps, leaps, jitter,
    adapts, target, limit, zero, sums, accepts, zero_state,
):  # fmt: skip
    """`steps` samples of every chain. Moves `points`; adapts `dual` if `warm`; adds p to sums, and what is reported.

    Burn-in adapts the step size of all chains together after each step; later on, each tile takes all of its steps.
    """
    for _ in range(steps if warm else 1):
        after = counter
        for t in range(len(sums)):
            after = counter
            here = Point(points.position[t], points.p[t], points.push[t], points.potential[t], points.normaliser[t])
            for _ in range(1 if warm else steps):
                after = _sample(
                    factor, frame, groups, n, scratch, here, there, keys[t], after, dual[STEP], leaps, jitter, accept[t]
                )
                add_to_sums(here.p, n, sums[t])
                add_energies(accept[t], accepts[t], lanes(here.p))
                if zero:
                    add_log(-load_energies(here.normaliser, lanes(here.p)), zero_state[t], lanes(here.p))
        counter = after
        if warm:
            mean = 0.0
            for c in range(chains):
                # with one chain a tile, every lane holds the same
                row, lane = (c, 0) if chains == len(accept) else (c // accept.shape[1], c % accept.shape[1])
                mean += accept[row, lane] / chains
            adapt(dual, adapts, target - mean, limit)
    return counter


@nb.njit(**KERNEL)
def _sample(factor, frame, groups, n, scratch, here, there, keys, counter, step, leaps, jitter, accept):
    """One sample of one tile; its acceptance probabilities go to `accept`."""
    size = in_lanes(step, lanes(here.p))
    if jitter > 0.0:
        size = size * (1.0 + jitter * (2.0 * chain_uniforms(here.p, keys, counter) - 1.0))
        counter += np.uint64(1)
    counter = draw_noise(keys, counter, scratch.noise, scratch.rows)
    gain = _travel(factor, frame, groups, n, scratch, leaps, size, here, there)
    # a trajectory that diverged to NaN is refused
    zero = 0.0 * size  # a step is finite
    chance = choose(gain == gain, exp(at_most(-gain, zero)), zero)
    store_sum_vector(address(accept, 0), 0, chance)
    move(chain_uniforms(here.p, keys, counter) < chance, there, here, n)
    return counter + np.uint64(1)

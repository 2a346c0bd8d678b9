"""DHMC in compiled code: whole batches of trajectories of all chains in one call.

What limits a sample: for one chain the products, one (A = I) or two a leapfrog step, which are bound by reading N²
numbers each; for many chains BLAS's products at the core's arithmetic peak, and the N normal numbers. All else runs
over flat arrays in full vectors. The edge-factored form has no dense product and costs O(E).

10×10 grid, five steps, best of many slices on a shared AVX-512 core, thousand samples a second, one chain / 100 chains:
A = I 276 / 517 in float32 and 170 / 291 in float64. One product on warm data takes 0.37 and 0.75 µs for one chain, so
that the five are half to two thirds of a sample; for 100 chains BLAS takes 0.12 and 0.26 µs a chain, a third.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt
from numba.extending import overload

from spinbench.api import Backend, Kernel
from spinbench.backends.numba import dhmc_leapfrog, dhmc_rotation
from spinbench.backends.numba.dhmc_leapfrog import Leapfrog
from spinbench.backends.numba.dhmc_point import Frame, Point, Scratch
from spinbench.backends.numba.functions import exp, flat
from spinbench.backends.numba.gram import Banded, Dense, Edges, make_dense, make_edges, noise_rows
from spinbench.backends.numba.random import chain_keys, fill_normal, fill_uniform
from spinbench.backends.numba.units import KERNEL, add_log, add_to, make_groups
from spinbench.methods import relaxed
from spinbench.methods.dhmc import DHMC, GAMMA, KAPPA, MAX_ANGLE, T0, DHMCTables
from spinbench.models import PairwiseModel

Array = npt.NDArray[Any]

STEP, CENTRE, ERROR, LOG_AVERAGE, COUNT = range(5)
"""Entries of the state of dual averaging, see `spinbench.methods.dhmc_program.StepSize`."""


@dataclass
class DHMCState:
    """Keys (2, C), the counter of the next random number, the point, the last acceptance probabilities (C,) float64,
    dual averaging (5,) float64, the frame, and the sum (N,) of p over the window and the chains."""

    keys: npt.NDArray[np.uint64]
    counter: np.uint64
    point: Point
    accept: Array
    dual: Array
    frame: Frame
    total: Array


class DHMCKernel(Kernel):
    """`spinbench.methods.dhmc.DHMC` with the same law, adaptation and statistics as its program."""

    def __init__(self, method: DHMC, backend: Backend, model: PairwiseModel, tables: DHMCTables) -> None:
        self._real = np.dtype(backend.precision)
        self._method = method
        self._tables: Any = tables  # which of its matrices exist, the form decides
        self._groups = make_groups(tables.sites, model.num_variables)
        self._factor = self._make_factor(tables)
        self._limit = MAX_ANGLE if method.rotates else np.inf

    def _make_factor(self, tables: DHMCTables) -> Leapfrog | Dense | Banded | Edges:
        if tables.edges is not None:
            return make_edges(tables.edges, self._real)
        assert tables.root is not None
        if tables.gram is not None:
            return make_dense(tables.gram, tables.root, self._real)
        root = np.ascontiguousarray(tables.root, dtype=self._real)
        none = np.zeros((0, 0), dtype=self._real)
        if tables.precision is not None:
            return Leapfrog(np.ascontiguousarray(tables.precision, dtype=self._real), none, none, True)
        return Leapfrog(none, root, np.ascontiguousarray(root.T), False)

    def init(self, seed: int, start: npt.NDArray[np.int8]) -> DHMCState:
        """x ~ p(x|s) and all that follows from it are computed on the host, once."""
        n, chains = start.shape
        keys, s, tables = chain_keys(seed, chains), start.astype(np.float64), self._tables
        noise = np.empty((noise_rows(self._factor, n), chains))
        counter = fill_normal(keys, np.uint64(0), noise)
        if tables.edges is not None:
            position = relaxed.edge_product(np, tables.edges, s, noise)
        elif tables.gram is not None:
            position = tables.gram @ s + tables.root @ noise
        else:
            position = tables.root.T @ s + noise
            position = position if tables.precision is None else tables.root @ position
        return DHMCState(
            keys=keys,
            counter=np.uint64(counter),
            point=self._make_point(position, m := np.full(n, 0.5)),
            accept=np.zeros(chains),
            dual=_restart(float(tables.first_step)),
            frame=self._make_frame(m),
            total=np.zeros(n),
        )

    def warm(self, state: DHMCState, steps: int) -> DHMCState:
        state.total += self._run(state, steps, True)[0].sum(axis=1)
        return state

    def adapt(self, state: DHMCState, last: bool) -> DHMCState:
        seen = state.dual[COUNT] > 0
        settled = np.exp(state.dual[LOG_AVERAGE]) if seen and self._method.adapts else state.dual[STEP]
        if last:
            state.dual[STEP] = settled
        elif self._method.rotates:
            if seen:
                m = state.total / (state.dual[COUNT] * state.accept.size)
                state.frame, state.point = self._make_frame(m), self._make_point(state.point.position, m)
            state.dual, state.total = _restart(settled), np.zeros_like(state.total)
        return state

    def advance(self, state: DHMCState, steps: int) -> tuple[DHMCState, dict[str, Array]]:
        sums, accepts, zero_state = self._run(state, steps, False)
        seen = {"p": sums, "accept": accepts, "step_size": np.full_like(accepts, state.dual[STEP])}
        if self._method.log_z == "zero_state":
            seen["zero_state"] = zero_state
        elif self._method.log_z != "none":
            seen["alpha"] = self._field(state.point.position)
        return state, seen

    def _field(self, position: Array) -> Array:
        """(N, C) float64: α of positions."""
        x = position.astype(np.float64)
        harmonium = not self._method.rotates and self._tables.precision is None
        return np.asarray(self._tables.root @ x if harmonium else x)

    def _product(self, v: Array) -> Array:
        """Qv, (N, C), for the rotating forms."""
        if self._tables.edges is not None:
            return np.asarray(relaxed.edge_product(np, self._tables.edges, v))
        return np.asarray(self._tables.gram @ v)

    def _make_frame(self, m: Array) -> Frame:
        b = self._tables.bias
        shift = self._product(m[:, None])[:, 0] if self._method.rotates else np.zeros_like(m)
        return Frame(*(x.astype(self._real) for x in (b, -b, -m, -shift, shift + b)))

    def _make_point(self, position: Array, m: Array) -> Point:
        """Everything at a position, in float64; see the two `travel`."""
        tables, x = self._tables, position.astype(self._real).astype(np.float64)
        u = self._field(x) + tables.bias[:, None]
        p = relaxed.unit_means(np, tables.sites, u)
        normaliser = np.ascontiguousarray(relaxed.log_normaliser(np, tables.sites, u))
        if self._method.rotates:
            push, gaussian = self._product(p - m[:, None]), m @ u
        else:
            Kx, Bp = (x, tables.root.T @ p) if tables.precision is None else (tables.precision @ x, p)
            push, gaussian = Kx - Bp, 0.5 * np.sum(x * Kx, axis=0)
        x, p, push = (np.ascontiguousarray(v, dtype=self._real) for v in (x, p, push))
        return Point(x, p, push, gaussian - normaliser, normaliser)

    def _run(self, state: DHMCState, steps: int, warm: bool) -> tuple[Array, Array, Array]:
        n, chains = state.point.p.shape
        sums, accepts, zero_state = np.zeros((n, chains)), np.zeros(chains), np.full(chains, -np.inf)
        factor = self._factor
        u, velocity, work, step, cosine, sine = np.empty((6, n, chains), dtype=self._real)
        noise = np.empty((noise_rows(factor, n), chains), dtype=self._real)
        jitter, test, energy = np.ones((1, chains)), np.empty((1, chains)), np.empty(chains)
        scratch = Scratch(noise, u, velocity, work, step, cosine, sine, jitter, test, energy)
        other = Point(*(np.empty_like(x) for x in state.point))
        method = self._method
        counter = _steps(
            *(factor, state.frame, self._groups, scratch, state.point, other, state.keys, state.counter),
            *(state.accept, state.dual, warm, steps, method.leapfrog_steps, method.relative_jitter),
            *(method.rotates, method.adapts, method.target_acceptance, self._limit, method.log_z == "zero_state"),
            *(sums, accepts, zero_state),
        )
        state.counter = np.uint64(counter)
        return sums, accepts, zero_state


def _restart(step: float) -> Array:
    return np.array([step, np.log(10 * step), 0.0, np.log(step), 0.0])


def _travel(factor: Any, frame: Any, groups: Any, scratch: Any, steps: int, here: Any, there: Any, gain: Any) -> None:
    raise NotImplementedError("compiled code only")


@overload(_travel, jit_options=KERNEL)
def _choose_travel(factor, frame, groups, scratch, steps, here, there, gain):
    """The factor's type decides which dynamics is compiled."""
    return dhmc_leapfrog.travel if factor.instance_class is Leapfrog else dhmc_rotation.travel


@nb.njit(cache=True, **KERNEL)
def _steps(
    factor, frame, groups, scratch, here, there, keys, counter, accept, dual, warm, steps, leaps, jitter,
    rotates, adapts, target, limit, zero, sums, accepts, zero_state,
):  # fmt: skip
    """`steps` samples. Moves `here`; adapts `dual` if `warm`; adds p to sums, and what else is reported if not."""
    chains = accept.size
    factors, tests, gain = scratch.jitter, scratch.test, scratch.energy
    for _ in range(steps):
        if jitter > 0.0:
            counter = fill_uniform(keys, counter, factors)
            for c in range(chains):
                factors[0, c] = 1.0 + jitter * (2.0 * factors[0, c] - 1.0)
        for c in range(chains):
            gain[c] = dual[STEP] * factors[0, c]
        _spread(gain, scratch.step)
        if rotates:
            for c in range(chains):
                tests[0, c], gain[c] = np.cos(gain[c]), np.sin(gain[c])
            _spread(tests[0], scratch.cosine)
            _spread(gain, scratch.sine)
        counter = fill_normal(keys, counter, scratch.noise)
        _travel(factor, frame, groups, scratch, leaps, here, there, gain)
        counter = fill_uniform(keys, counter, tests)
        mean = 0.0
        for c in range(chains):
            # a trajectory that diverged to NaN is refused
            accept[c] = 0.0 if np.isnan(gain[c]) else exp(min(-gain[c], 0.0))
            mean += accept[c] / chains
        _move(tests[0], accept, there, here)
        add_to(here.p, sums)
        if warm:
            _adapt(dual, adapts, target - mean, limit)
        else:
            for c in range(chains):
                accepts[c] += accept[c]
            if zero:
                for c in range(chains):
                    gain[c] = -here.normaliser[c]
                add_log(gain, zero_state)
    return counter


@nb.njit(**KERNEL)
def _spread(values, out):
    """out_ic = values_c."""
    if values.size == 1:
        flat_out, value = flat(out), values[0]
        for i in range(flat_out.size):
            flat_out[i] = value
        return
    for i in range(out.shape[0]):
        row = out[i]
        for c in range(values.size):
            row[c] = values[c]


@nb.njit(**KERNEL)
def _adapt(dual, adapts, miss, limit):
    """One step of dual averaging (Hoffman and Gelman 2014, eq. 6)."""
    dual[COUNT] += 1.0
    if adapts:
        count = dual[COUNT]
        weight = 1.0 / (count + T0)
        dual[ERROR] = (1.0 - weight) * dual[ERROR] + weight * miss
        log_step = min(dual[CENTRE] - np.sqrt(count) / GAMMA * dual[ERROR], np.log(limit))
        trust = count**-KAPPA
        dual[LOG_AVERAGE] = trust * log_step + (1.0 - trust) * dual[LOG_AVERAGE]
        dual[STEP] = np.exp(log_step)


@nb.njit(**KERNEL)
def _move(tests, accept, there, here):
    """The chains whose proposal is accepted, tests < accept, move."""
    moving = 0
    for c in range(tests.size):
        if tests[c] < accept[c]:
            moving += 1
            here.potential[c], here.normaliser[c] = there.potential[c], there.normaliser[c]
    if moving:
        _take(tests, accept, there.position, here.position)
        _take(tests, accept, there.p, here.p)
        _take(tests, accept, there.push, here.push)


@nb.njit(**KERNEL)
def _take(tests, accept, new, old):
    """Columns of (N, C) arrays; the only one where C = 1."""
    if tests.size == 1:
        flat_new, flat_old = flat(new), flat(old)
        for i in range(flat_new.size):
            flat_old[i] = flat_new[i]
        return
    for i in range(new.shape[0]):
        source, target = new[i], old[i]
        for c in range(tests.size):
            target[c] = source[c] if tests[c] < accept[c] else target[c]

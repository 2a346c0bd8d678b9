"""Checks of the random numbers that a method draws: that none serve twice, in time, among variables or by their key."""

from __future__ import annotations

import sys
import time

import numpy as np
import numpy.typing as npt

from spinbench.api import Array, Key, Method, Precision
from spinbench.backends.numpy import NumpyBackend
from spinbench.inference import registry
from spinbench.inference.engine import ProgramEngine
from spinbench.testing import limits
from spinbench.testing.check import PAIR_CHECKS, require, skip
from spinbench.testing.laws.cases import FloatArray
from spinbench.testing.laws.large_models import find_solved_model
from spinbench.testing.pair import Pair
from spinbench.testing.trial import FEW_CHAINS, SEED, Batches, advance_batches

# Chains that are observed.
LANES = 17
# Steps that are observed, and steps of a batch. Repetitions of random numbers after 4n steps are noticed if they affect
# up to 3 in 4 steps.
STEPS, EACH = 2048, 4
# Largest correlation with earlier steps that may be chance.
MAX_RECURRENCE = 0.25
# A model of independent pairs.
UNCOUPLED_MODEL = "111 pairs"
LOOKS = 32
# Chains whose means identify rows.
ROW_CHAINS = 9
# Of numbers at the ends of [0, 1]: chains, steps of a batch at most, draws among which some eight of 24 bits are 0,
# and CPU seconds after which there are fewer.
END_CHAINS, MAX_END_STEPS, END_DRAWS, END_SECONDS = 4096, 64, 2**27, 4.0
# Of a variable's draws; one draw of a batch is 4e-6.
MIN_SHARE = 1e-7
# Largest difference between a row's mean and its marginal.
MAX_DIFFERENCE = 1e-5


class KeyRecorder(NumpyBackend):
    """NumPy, which keeps where each random key was drawn from."""

    def __init__(self, *, precision: Precision = "float64", device: str = "cpu") -> None:
        super().__init__(precision=precision, device=device)
        self.first_draws: dict[Key, str] = {}
        self.twice = ""

    def uniform(self, key: Key, shape: tuple[int, ...]) -> Array:
        self._record_draw(key, "uniform")
        return super().uniform(key, shape)

    def normal(self, key: Key, shape: tuple[int, ...]) -> Array:
        self._record_draw(key, "normal")
        return super().normal(key, shape)

    def _record_draw(self, key: Key, kind: str) -> None:
        frame = sys._getframe(2)
        location = f"{kind} ({frame.f_globals.get('__name__')}, line {frame.f_lineno})"
        if key in self.first_draws and not self.twice:
            self.twice = f"{self.first_draws[key]} and {location}"
        self.first_draws.setdefault(key, location)


@PAIR_CHECKS.add("random keys", "sampler")
def check_keys_used_once(pair: Pair) -> None:
    """A program draws from each key once: numbers of one key, of whatever law, are made of the same bits."""
    at, backend = pair.trial("dense"), KeyRecorder(precision=pair.precision)
    if not isinstance(at.engine, ProgramEngine):
        skip("a kernel has random numbers of its own")
    if why := registry.why_no_program(type(pair.method), KeyRecorder):
        skip(f"the program does not run on NumPy, where it is looked at: {why}")
    program = pair.method.program(backend)
    if not program.compiled:
        skip("what a program does on the host has keys of its own")
    engine = ProgramEngine(program, backend, at.tables, pair.method.reductions)
    state = engine.init(SEED, at.law.uniform_states(LANES, SEED))
    steps = 1
    if pair.method.kind != "direct":
        state, steps = engine.adapt(engine.warm(state, 2), True), 2
    state, _ = engine.advance(state, steps)
    engine.look(state)
    require(
        not backend.twice,
        f"{backend.twice} draw from the same key, so that their numbers depend on each other: fold another index into "
        "one of them",
    )


@PAIR_CHECKS.add("random numbers in time", "sampler")
def check_period(pair: Pair) -> None:
    """Chains do not repeat their course, as they would if random numbers began anew, and do not stop moving."""
    at = pair.trial("dense")
    if isinstance(at.engine, ProgramEngine):
        skip("a program gets another key in each step")
    state = at.engine.adapt(at.engine.init(SEED, at.law.exact_draws(LANES, SEED)), True)
    series = _statistic_series(advance_batches(at.engine, state, [EACH] * (STEPS // EACH))[1], pair.method)
    moving = [rows for rows in series if np.isfinite(rows).all()]
    if not moving:
        skip("no statistic is finite in every batch")
    x = np.concatenate(moving, axis=1)
    moved = (x[1:] != x[:-1]).any(axis=1)  # (T - 1, chains)
    still = np.flatnonzero(moved.any(axis=0) & ~moved[-len(x) // 8 :].any(axis=0))
    last = EACH * (int(np.flatnonzero(moved[:, still].any(axis=1)).max(initial=0)) + 2)
    require(not still.size, f"of {LANES} chains, {still.tolist()} stand still after {last} steps, about")
    back = _autocorrelation_rises(x - x.mean(axis=0))
    # A periodic stream rises at every multiple: the first lag counts.
    lag = int(np.argmax(back >= 0.8 * back.max()))
    require(
        back[lag] < MAX_RECURRENCE,
        f"after {EACH * lag} steps chains go the same way again (correlation {back[lag]:.2f}): the random numbers "
        "repeat",
    )


@PAIR_CHECKS.add("random numbers at the ends, {}", "sampler", "native", over=lambda pair: pair.other_precisions)
@PAIR_CHECKS.add("random numbers at the ends", "sampler", "native")
def check_ends_of_unit_interval(pair: Pair, precision: Precision | None = None) -> None:
    """What has probability 1 happens, and what has none does not, though one number in 2^24 is 0, or is rounded to 1.

    Raises:
        SkipTest: chains leave the state of all weight by themselves, as with auxiliary ones.
    """
    at = pair.trial("pinned", precision)
    exact = at.solved.marginals
    start = np.repeat(exact.astype(np.int8)[:, None], END_CHAINS, axis=1)
    state = at.engine.adapt(at.engine.init(SEED, start), True)
    state, batches = advance_batches(at.engine, state, [1])
    first = at.estimate(batches).marginals
    if first is None or np.abs(first - exact).max() > MIN_SHARE:
        skip("its marginals are not those of its states")
    since, draws, steps = time.process_time(), 0, 1
    while draws < END_DRAWS and (spent := time.process_time() - since) < END_SECONDS:
        state, batches = advance_batches(at.engine, state, [steps])
        draws += exact.size * END_CHAINS * steps
        if time.process_time() - since - spent < END_SECONDS / 16:
            steps = min(2 * steps, MAX_END_STEPS)
        off = np.abs(np.asarray(at.estimate(batches).marginals) - exact)
        require(
            off.max() <= MIN_SHARE,
            f"of {draws} draws some left a state that has all weight but e^-100, of variables "
            f"{np.flatnonzero(off > MIN_SHARE)[:4].tolist()}: a random number that is 0, or is rounded to 1, takes the "
            "wrong branch",
        )


@PAIR_CHECKS.add("random numbers of variables", "sampler")
def check_variables_independent(pair: Pair) -> None:
    """Variables that nothing couples are uncorrelated, at one time and from one step to the next."""
    if pair.method.kind == "draws":
        skip("what it reports is not of chains")
    exact, at = find_solved_model(UNCOUPLED_MODEL), pair.trial(UNCOUPLED_MODEL)
    batches = advance_batches(at.engine, at.start_chains(FEW_CHAINS, SEED), [1] * LOOKS)[1]
    chain_marginals = [at.estimate(batches, slice(c, c + 1)).marginals for c in range(ROW_CHAINS)]
    if any(marginals is None for marginals in chain_marginals):
        skip("it has no marginals")
    means = np.stack([np.asarray(marginals) for marginals in chain_marginals], axis=1)
    series = [
        x
        for x in (_order_rows_by_variable(rows, means) for rows in _statistic_series(batches, pair.method))
        if x is not None
    ]
    if not series:
        skip("no statistic has a row for each variable, whose mean is its marginal")
    i, j = np.asarray(exact.model.edges).T  # type: ignore[union-attr]
    for x in series:
        x = (x - x.mean(axis=(0, 2), keepdims=True)) / np.maximum(x.std(axis=(0, 2), keepdims=True), 1e-12)
        for steps, interval in ((0, "in one step"), (1, "from one step to the next")):
            t = np.abs(_correlation_t_values(x[: LOOKS - steps], x[steps:]))
            np.fill_diagonal(t, 0)
            t[i, j] = t[j, i] = 0
            limit = limits.student_limit(FEW_CHAINS - 1, t.size)
            a, b = np.unravel_index(np.argmax(t), t.shape)
            require(
                t[a, b] <= limit,
                f"variables {a} and {b} are correlated {interval} though nothing couples them (|t| = {t[a, b]:.1f}, at "
                f"most {limit:.1f} is chance): they share random numbers, or one is taken for the other",
            )


def _order_rows_by_variable(rows: FloatArray, means: FloatArray) -> FloatArray | None:
    """(T, N, C) rows of a statistic in the order of the variables, which their `means` (N, C) in single chains tell;
    None where these are not those of rows."""
    row_means = rows[:, :, : means.shape[1]].mean(axis=0)
    if len(row_means) != len(means):
        return None
    far = np.abs(row_means[None, :, :] - means[:, None, :]).max(axis=-1)
    # Different rows may have equal means.
    if (far.diagonal() < MAX_DIFFERENCE).all():
        return rows
    if (far.min(axis=1) < MAX_DIFFERENCE).all():
        return rows[:, far.argmin(axis=1)]
    return None


def _statistic_series(batches: Batches, method: Method) -> list[FloatArray]:
    """(batches, rows, chains) of each statistic."""
    return [
        np.stack([np.asarray(batch[name], np.float64).reshape(-1, batch[name].shape[-1]) for _, batch in batches])
        for name in method.reductions
    ]


def _autocorrelation_rises(x: npt.NDArray[np.float64]) -> FloatArray:
    """For each lag of (T, rows, chains): the correlation with what was so many batches before, over all rows and
    chains, less the least of any shorter lag, as chains forget before anything can come back."""
    t = len(x)
    x = x / np.maximum(np.sqrt((x**2).mean(axis=(0, 2), keepdims=True)), 1e-300)
    power = (np.abs(np.fft.rfft(x, 2 * t, axis=0)) ** 2).sum(axis=(1, 2))
    lags = 3 * t // 4
    together = np.fft.irfft(power)[:lags] / (t - np.arange(lags)) / max(x[0].size, 1)
    return np.asarray(together - np.minimum.accumulate(together))


def _correlation_t_values(x: FloatArray, y: FloatArray) -> FloatArray:
    """Student's t (N, N) of the correlation of rows of (T, N, C) series, from its spread over chains."""
    each = np.einsum("tic,tjc->ijc", x, y, optimize=True) / len(x)
    return np.asarray(each.mean(axis=-1) / (each.std(axis=-1, ddof=1) / np.sqrt(each.shape[-1]) + 1e-12))

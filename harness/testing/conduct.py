"""Checks of how a method on a backend behaves: seeds, batches, statistics, shapes, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from spinbench.api import LogZKind, Method, Precision
from spinbench.api.trace import Trace
from spinbench.foundation.trees import OnHost
from spinbench.models import PairwiseModel
from spinbench.testing import limits
from spinbench.testing.answers import FLOOR, SHORT, compare_log_z
from spinbench.testing.check import OF_PAIRS, refuses, require, skip
from spinbench.testing.laws.cases import CASES, law
from spinbench.testing.pair import Pair
from spinbench.testing.trial import SEED, Batches, advance, burn_in, reduce_batches

MOST_STEPS = 2000
LONG_CHAINS = 17
"""In long batches; as many as another check has."""
TAILED = 8.0
"""Fourth moments from which rows are left alone: two chains of which both are rare say nothing together."""
SKEW = 1.15
"""By which the limit of means of such products is wider than that of normal numbers."""


@OF_PAIRS.add("kernel", "native")
def kernel(pair: Pair) -> None:
    """The kernel can be asked; where it refuses the settings, this says so: what is checked is the program."""
    model = law(next(iter(pair.accepted()), "dense")).model
    found = pair.bind(model, pair.method.plan(model), pair.precision)
    if found.tier != "native":
        skip(f"the program is checked: {'; '.join(found.notes)}")


@OF_PAIRS.add("plan")
def plan(pair: Pair) -> None:
    """plan leaves the model as it was, and gives the same tables again."""
    accepted = pair.accepted()
    require(accepted, f"plan refuses every model of the suite: {', '.join(CASES)}")
    for case in accepted:
        model = law(case).model
        assert isinstance(model, PairwiseModel)
        before = model.content_hash, model.biases.tobytes(), model.couplings.tobytes()
        first, second = pair.method.plan(model), pair.method.plan(model)
        after = model.content_hash, model.biases.tobytes(), model.couplings.tobytes()
        require(before == after, f"plan changes the model {model.name!r}")
        for a, b in zip(_leaves(first), _leaves(second), strict=True):
            same = np.array_equal(a, b, equal_nan=a.dtype.kind == "f") if isinstance(a, np.ndarray) else a == b
            require(same, f"two plans of {model.name!r} differ")
            if type(pair.method).program is not Method.program:
                require(
                    a is None or isinstance(a, np.ndarray | np.generic),
                    f"plan gives a {type(a).__name__}; NumPy arrays in (named) tuples are needed for backends to take",
                )


@OF_PAIRS.add("statistics")
def statistics(pair: Pair) -> None:
    """Engines report what `reductions` names: finite host arrays with the chain axis last."""
    reductions = pair.method.reductions
    for reduction in reductions.values():
        require(reduction in ("sum", "logsumexp", "last"), f"reduction {reduction!r} is unknown")
    for case in pair.accepted():
        batches = pair.sample(case).batches
        chains = {array.shape[-1:] for _, batch in batches for array in batch.values()}
        wanted = {(pair.chains,)} if pair.sampler else {(pair.chains,), (1,)}  # iterations may have one answer for all
        require(chains <= wanted, f"statistics end in axes of {sorted(chains)}; {pair.chains} chains come last")
        for _, batch in batches:
            require(
                set(batch) == set(reductions),
                f"the engine reports {sorted(batch)}; reductions names {sorted(reductions)}",
            )
            for name, array in batch.items():
                require(array.dtype.kind in "fiub", f"statistic {name} has dtype {array.dtype}")
                bad = np.isnan(array) if reductions[name] == "logsumexp" else ~np.isfinite(array)
                require(not bad.any(), f"statistic {name} holds {array[bad][:1]} on {case!r}")


@OF_PAIRS.add("estimates")
def estimates(pair: Pair) -> None:
    """Shapes, dtypes and ranges of an Estimate; estimating twice gives the same and leaves the trace alone."""
    for case in pair.accepted():
        sample = pair.sample(case)
        trace = Trace(pair.method.reductions)
        for steps, batch in sample.batches:
            trace.add(batch, steps)
        before = {name: trace.series(name).tobytes() for name in trace.reductions}
        one = pair.method.estimate(sample.bound.law.model, sample.bound.tables, trace)
        two = pair.method.estimate(sample.bound.law.model, sample.bound.tables, trace)
        after = {name: trace.series(name).tobytes() for name in trace.reductions}
        require(before == after, "estimate changes the trace")
        require(one.log_z == two.log_z, f"two estimates of one trace give log Z {one.log_z} and {two.log_z}")
        n = sample.bound.law.model.num_variables
        for field in ("marginals", "marginals_se", "marginals_error_bound", "ess", "r_hat"):
            value = getattr(one, field)
            if value is None:
                continue
            require(np.array_equal(value, getattr(two, field), equal_nan=True), f"two estimates differ in {field}")
            require(np.shape(value) == (n,), f"{field} has shape {np.shape(value)}; {(n,)} is needed")
            require(np.asarray(value).dtype == np.float64, f"{field} has dtype {np.asarray(value).dtype}")
        if one.marginals is not None:
            low, high = float(np.min(one.marginals)), float(np.max(one.marginals))
            require(low >= 0 and high <= 1, f"marginals lie in [{low}, {high}]; [0, 1] is needed")
        for field in ("marginals_se", "marginals_error_bound", "log_z_se", "log_z_error_bound", "ess", "r_hat"):
            value = getattr(one, field)
            require(value is None or not (np.asarray(value) < 0).any(), f"{field} is negative")
        require(one.log_z_kind in get_args(LogZKind), f"log_z_kind is {one.log_z_kind!r}")
        require(one.log_z is None or isinstance(one.log_z, float), f"log_z is a {type(one.log_z).__name__}")
        for name, (value, error) in one.log_z_estimates.items():
            require(not np.isnan(value) and not error < 0, f"estimator {name} gives {value} ± {error} on {case!r}")


@OF_PAIRS.add("determinism")
def determinism(pair: Pair) -> None:
    """Same seed, same numbers; without standard errors, any seed the same numbers."""
    bound = pair.trial("dense")
    start = bound.law.bits(pair.chains, 3)
    one, two, other = (_short(pair, seed, start) for seed in (SEED, SEED, SEED + 1))
    for name in pair.method.reductions:
        require(np.array_equal(one[name], two[name]), f"the same seed gives different {name}")
    if pair.sampler:
        same = [name for name in pair.method.reductions if np.array_equal(one[name], other[name])]
        require(len(same) < len(pair.method.reductions), "two seeds give the same statistics")
    else:
        for name in pair.method.reductions:
            require(
                np.allclose(one[name], other[name], rtol=1e-9, atol=1e-12),
                f"no standard errors are reported, yet {name} depends on the seed",
            )


@OF_PAIRS.add("independence of chains", "sampler")
def chains(pair: Pair) -> None:
    """Chains that start alike go ways of their own, uncorrelated, and so do those of the next seed."""
    bound = pair.trial("dense")
    start = np.repeat(bound.law.bits(1, 4), pair.chains, axis=1)
    one, other = _short(pair, SEED, start), _short(pair, SEED + 1, start)
    rows = np.concatenate([_rows(array) for array in one.values()])
    distinct = len(np.unique(rows, axis=1).T)
    require(
        distinct > pair.chains // 8, f"of {pair.chains} chains that start alike, {distinct} differ after a few steps"
    )
    varying = {name: _varying(one[name]) & _varying(other[name]) for name in one}
    name = max(one, key=lambda name: varying[name].mean())
    require(varying[name].any(), "no statistic has a row of finite numbers that differ between chains")
    a, b = (_standardised(_rows(run[name])[varying[name]]) for run in (one, other))
    calm = ((a**4).mean(axis=1) < TAILED) & ((b**4).mean(axis=1) < TAILED)
    _uncorrelated(a[calm], b[calm], name)
    one_mean, two_mean = (_rows(run[name])[varying[name]] for run in (one, other))
    _of_chains_of_their_own(one_mean[calm], two_mean[calm], name)


def _of_chains_of_their_own(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64], name: str) -> None:
    """Means (R,) over the chains of two seeds differ by as much as so many independent chains let them."""
    spread = np.sqrt((a.var(axis=1) + b.var(axis=1)) / a.shape[1])
    z = np.abs(a.mean(axis=1) - b.mean(axis=1)) / spread
    limit = SKEW * limits.normal_limit(max(z.size, 1))
    require(
        float(z.max(initial=0)) <= limit,
        f"means of {name} over {a.shape[1]} chains of two seeds differ by {z.max(initial=0):.0f} standard errors, at "
        f"most {limit:.1f} is chance: all chains share some random numbers",
    )


def _uncorrelated(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64], name: str) -> None:
    """Chains as far from each other as can be, in a circle, of the rows (R, C) of a statistic with one seed and the
    next."""
    chains = a.shape[1]
    one, two = np.fft.rfft(a, axis=1), np.fft.rfft(b, axis=1)
    powers = (one * one.conj(), one * two.conj())
    within, across = (np.fft.irfft(power, chains, axis=1) / np.sqrt(chains) for power in powers)
    within = within[:, 1 : chains // 2 + 1]
    limit = SKEW * limits.normal_limit(max(within.size + across.size, 1))
    for z, first in ((within, 1), (across, 0)):
        far = int(np.argmax(np.abs(z).max(axis=0, initial=0)))
        worst, far = float(np.abs(z[:, far]).max(initial=0)), far + first
        far = far if far <= chains // 2 else far - chains
        what = f"chains c and c + {far}" if far > 1 else "neighbouring chains"
        if not first:
            what = f"chain c {'+-'[far < 0]} {abs(far)} and chain c of the next seed" if far else "chains of two seeds"
        require(worst <= limit, f"{what} are correlated in {name}: |z| = {worst:.1f}, at most {limit:.1f} is chance")


@OF_PAIRS.add("independence of batching", "method.anytime")
def batching(pair: Pair) -> None:
    """How a run is cut into calls, short ones or long ones, does not change it.

    Most are no multiples of unrolled turns, and in the long one of samplers a state is counted more often than 8
    bits hold.
    """
    _cut(pair, pair.chains, (([7], [11]), ([3, 4], [1, 3, 7]), ([1, 6], [2, 2, 2, 5])))
    if not pair.sampler:
        return
    _cut(pair, LONG_CHAINS, (([7], [509]), ([7], [150, 170, 189])))


def _cut(pair: Pair, chains: int, ways: tuple[tuple[list[int], list[int]], ...]) -> None:
    bound = pair.trial("dense")
    engine, start = bound.engine, bound.law.bits(chains, 5)
    runs: list[Batches] = []
    for warm, lengths in ways:
        state = engine.init(SEED, start)
        for steps in warm:
            state = engine.warm(state, steps)
        runs.append(advance(engine, engine.adapt(state, True), lengths)[1])
    for name, reduction in pair.method.reductions.items():
        whole, *others = (reduce_batches([batch[name] for _, batch in batches], reduction) for batches in runs)
        for other in others:
            close = np.allclose(whole, other, rtol=1e-8, atol=1e-8)
            steps = sum(ways[0][1])
            require(close, f"{steps} steps at once and in several batches give different {name} ({reduction})")


@OF_PAIRS.add("end of iterations", "iteration")
def ending(pair: Pair) -> None:
    """Once `finished` says so, further steps change nothing; an iteration that goes on is reported as such, and what
    it bounds it bounds on the way."""
    for case in SHORT:  # they come to it soon, and late
        if case in pair.accepted():
            _ending(pair, case)


def _ending(pair: Pair, case: str) -> None:
    bound = pair.trial(case)
    engine, method = bound.engine, pair.method
    trace = Trace(method.reductions)
    state, statistics = engine.advance(engine.init(SEED, bound.law.bits(pair.chains, 6)), 1)
    trace.add(statistics, 1)
    early = method.estimate(bound.law.model, bound.tables, trace)
    if early.log_z_kind in ("lower", "upper"):
        compare_log_z(early, bound.law.log_z, FLOOR[pair.precision], 0.0, coupled=True)
    while trace.samples < MOST_STEPS and not (trace.samples and method.finished(trace)):
        state, statistics = engine.advance(state, 10)
        trace.add(statistics, 10)
    found = method.estimate(bound.law.model, bound.tables, trace)
    if not method.finished(trace):
        require(not found.converged, f"{MOST_STEPS} steps do not finish, yet converged is True")
        return
    more = 4 * trace.samples
    _, statistics = engine.advance(state, more)
    later = Trace(method.reductions)
    later.add(statistics, more)
    after = method.estimate(bound.law.model, bound.tables, later)
    for field in ("marginals", "log_z"):
        one, two = getattr(found, field), getattr(after, field)
        if one is not None:
            moved = float(np.max(np.abs(np.asarray(one) - np.asarray(two))))
            require(moved <= 1e-3, f"{field} moves by {moved:.2g} after finished said that nothing would change")
            begun = np.asarray(getattr(early, field))
            moved = float(np.max(np.abs(begun - np.asarray(two)))) if early.converged and early.status == "ok" else 0.0
            require(moved <= 1e-2, f"{field} moves by {moved:.2g} after one step of which converged is True")


@OF_PAIRS.add("refusal, {}", over=lambda pair: pair.missing_precisions)
def refused_precision(pair: Pair, precision: Precision) -> None:
    """A precision that the backend does not offer is refused."""
    model = law(pair.accepted()[0]).model
    tables = pair.method.plan(model)
    refuses(lambda: pair.bind(model, tables, precision), f"precision={precision}")


def _short(pair: Pair, seed: int, start: npt.NDArray[np.int8]) -> dict[str, npt.NDArray[Any]]:
    """Statistics of a few steps, one by one: few states of a small model make many sequences."""
    engine = pair.trial("dense").engine
    state = engine.init(seed, start)
    if pair.method.anytime:
        state = burn_in(engine, state, 8)
    batches = advance(engine, state, [1] * (8 if pair.method.anytime else 1))[1]
    return {name: np.stack([batch[name] for _, batch in batches]) for name in batches[0][1]}


def _rows(array: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    return np.asarray(array, dtype=np.float64).reshape(-1, array.shape[-1])


def _varying(array: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which rows hold finite numbers, not all the same; logs of sums of nothing are -inf."""
    rows = _rows(array)
    return np.asarray(np.isfinite(rows).all(axis=1) & (rows.min(axis=1) < rows.max(axis=1)))


def _standardised(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray((rows - rows.mean(axis=1, keepdims=True)) / rows.std(axis=1, keepdims=True))


def _leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, tuple | list):
        for node in tree:
            yield from _leaves(node)
    elif not isinstance(tree, OnHost):  # estimates show what these are
        yield tree

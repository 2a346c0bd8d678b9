"""Checks of how a method on a backend behaves: seeds, batches, statistics, shapes, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from spinbench.api import LogZKind, Method, Precision, Tables, Trace
from spinbench.api.estimate import NOT_CONVERGED, verdict
from spinbench.errors import ModelError, UnsupportedError
from spinbench.foundation.trees import OnHost
from spinbench.models import PairwiseModel
from spinbench.testing import limits
from spinbench.testing.answers import FLOOR, SHORT, compare_log_z
from spinbench.testing.check import PAIR_CHECKS, require, require_refusal, skip
from spinbench.testing.laws.cases import CASES, law
from spinbench.testing.pair import Pair
from spinbench.testing.trial import SEED, Batches, advance_batches, reduce_batches, run_burn_in, step_count

MAX_STEPS = 2000
# Chains of the check of long batches, a number that another check has compiled.
LONG_CHAINS = 17
# Added to a model's fields for one that differs in these alone.
OTHER_FIELDS = 0.5


@PAIR_CHECKS.add("kernel", "native")
def check_kernel(pair: Pair) -> None:
    """The kernel can be asked; where it refuses the settings, this says so: what is checked is the program."""
    model = law(next(iter(pair.list_accepted_cases()), "dense")).model
    bound = pair.bind(model, pair.method.plan(model), pair.precision)
    if bound.tier != "native":
        skip(f"the program is checked: {'; '.join(bound.notes)}")


@PAIR_CHECKS.add("plan")
def check_plan(pair: Pair) -> None:
    """plan leaves the model as it was, and gives the same tables again, but other ones for other numbers."""
    accepted = pair.list_accepted_cases()
    require(accepted, f"plan refuses every model of the suite: {', '.join(CASES)}")
    for case in accepted:
        model = law(case).model
        assert isinstance(model, PairwiseModel)
        before = model.content_hash, model.biases.tobytes(), model.couplings.tobytes()
        first, second = pair.method.plan(model), pair.method.plan(model)
        after = model.content_hash, model.biases.tobytes(), model.couplings.tobytes()
        require(before == after, f"plan changes the model {model.name!r}")
        _require_other_tables(pair.method, model, first)
        for a, b in zip(_tree_leaves(first), _tree_leaves(second), strict=True):
            same = np.array_equal(a, b, equal_nan=a.dtype.kind == "f") if isinstance(a, np.ndarray) else a == b
            require(same, f"two plans of {model.name!r} differ")
            if type(pair.method).program is not Method.program:
                require(
                    a is None or isinstance(a, np.ndarray | np.generic),
                    f"plan gives a {type(a).__name__}; NumPy arrays in (named) tuples are needed for backends to take",
                )


def _require_other_tables(method: Method, model: PairwiseModel, tables: Tables) -> None:
    """A model of the same variables and edges, with other fields, has no equal tables."""
    try:
        other = method.plan(replace(model, biases=model.biases + OTHER_FIELDS))
    except (ModelError, UnsupportedError):
        return
    leaves = [leaf for leaf in _tree_leaves(tables) if isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f"]
    others = [leaf for leaf in _tree_leaves(other) if isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f"]
    if leaves and len(leaves) == len(others):
        same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(leaves, others, strict=True))
        require(
            not same, f"plan gives the tables of {model.name!r} for other fields, too: it may keep them by their size"
        )


@PAIR_CHECKS.add("statistics")
def check_reported_arrays(pair: Pair) -> None:
    """Engines report what `reductions` names: finite host arrays with the chain axis last."""
    reductions = pair.method.reductions
    for reduction in reductions.values():
        require(reduction in ("sum", "logsumexp", "last"), f"reduction {reduction!r} is unknown")
    for case in pair.list_accepted_cases():
        batches = pair.sample(case).batches
        chains = {array.shape[-1:] for _, batch in batches for array in batch.values()}
        expected_chains = {(pair.chains,)}
        # An iteration may report a single answer for all chains.
        if not pair.sampler:
            expected_chains.add((1,))
        require(
            chains <= expected_chains, f"statistics end in axes of {sorted(chains)}; {pair.chains} chains come last"
        )
        for _, batch in batches:
            require(
                set(batch) == set(reductions),
                f"the engine reports {sorted(batch)}; reductions names {sorted(reductions)}",
            )
            for name, array in batch.items():
                require(array.dtype.kind in "fiub", f"statistic {name} has dtype {array.dtype}")
                bad = np.isnan(array) if reductions[name] == "logsumexp" else ~np.isfinite(array)
                require(not bad.any(), f"statistic {name} holds {array[bad][:1]} on {case!r}")


@PAIR_CHECKS.add("estimates")
def check_estimates(pair: Pair) -> None:
    """Shapes, dtypes and ranges of an Estimate; estimating twice gives the same and leaves the trace alone."""
    for case in pair.list_accepted_cases():
        sample = pair.sample(case)
        trace = Trace(pair.method.reductions)
        for steps, batch in sample.batches:
            trace.add(batch, steps)
        before = {name: trace.series(name).tobytes() for name in trace.reductions}
        first_estimate = pair.method.estimate(sample.bound.law.model, sample.bound.tables, trace)
        second_estimate = pair.method.estimate(sample.bound.law.model, sample.bound.tables, trace)
        after = {name: trace.series(name).tobytes() for name in trace.reductions}
        require(before == after, "estimate changes the trace")
        require(
            first_estimate.log_z == second_estimate.log_z,
            f"two estimates of one trace give log Z {first_estimate.log_z} and {second_estimate.log_z}",
        )
        n = sample.bound.law.model.num_variables
        for field in ("marginals", "marginals_se", "marginals_error_bound", "ess", "r_hat"):
            value = getattr(first_estimate, field)
            if value is None:
                continue
            require(
                np.array_equal(value, getattr(second_estimate, field), equal_nan=True),
                f"two estimates differ in {field}",
            )
            require(np.shape(value) == (n,), f"{field} has shape {np.shape(value)}; {(n,)} is needed")
            require(np.asarray(value).dtype == np.float64, f"{field} has dtype {np.asarray(value).dtype}")
        if first_estimate.marginals is not None:
            low, high = float(np.min(first_estimate.marginals)), float(np.max(first_estimate.marginals))
            require(low >= 0 and high <= 1, f"marginals lie in [{low}, {high}]; [0, 1] is needed")
        for field in ("marginals_se", "marginals_error_bound", "log_z_se", "log_z_error_bound", "ess", "r_hat"):
            value = getattr(first_estimate, field)
            require(value is None or not (np.asarray(value) < 0).any(), f"{field} is negative")
        require(first_estimate.log_z_kind in get_args(LogZKind), f"log_z_kind is {first_estimate.log_z_kind!r}")
        require(
            first_estimate.log_z is None or isinstance(first_estimate.log_z, float),
            f"log_z is a {type(first_estimate.log_z).__name__}",
        )
        for name, (value, error) in first_estimate.log_z_estimates.items():
            require(not np.isnan(value) and not error < 0, f"estimator {name} gives {value} ± {error} on {case!r}")


@PAIR_CHECKS.add("determinism")
def check_determinism(pair: Pair) -> None:
    """Same seed, same numbers; without standard errors, any seed the same numbers."""
    bound = pair.trial("dense")
    start = bound.law.uniform_states(pair.chains, 3)
    first_run, repeated_run, other_seed_run = (_run_single_steps(pair, seed, start) for seed in (SEED, SEED, SEED + 1))
    for name in pair.method.reductions:
        require(np.array_equal(first_run[name], repeated_run[name]), f"the same seed gives different {name}")
    if pair.sampler:
        same = [name for name in pair.method.reductions if np.array_equal(first_run[name], other_seed_run[name])]
        require(len(same) < len(pair.method.reductions), "two seeds give the same statistics")
    else:
        for name in pair.method.reductions:
            require(
                np.allclose(first_run[name], other_seed_run[name], rtol=1e-9, atol=1e-12),
                f"no standard errors are reported, yet {name} depends on the seed",
            )


@PAIR_CHECKS.add("independence of chains", "sampler")
def check_chain_independence(pair: Pair) -> None:
    """Chains with one initial state diverge and are uncorrelated, also with the chains of the next seed."""
    bound = pair.trial("dense")
    start = np.repeat(bound.law.uniform_states(1, 4), pair.chains, axis=1)
    first_run, second_run = _run_single_steps(pair, SEED, start), _run_single_steps(pair, SEED + 1, start)
    rows = np.concatenate([_flatten_rows(array) for array in first_run.values()])
    distinct = len(np.unique(rows, axis=1).T)
    require(
        distinct > pair.chains // 8, f"of {pair.chains} chains that start alike, {distinct} differ after a few steps"
    )
    varying = {name: _find_varying_rows(first_run[name]) & _find_varying_rows(second_run[name]) for name in first_run}
    name = max(first_run, key=lambda name: varying[name].mean())
    require(varying[name].any(), "no statistic has a row of finite numbers that differ between chains")
    a, b = (_flatten_rows(run[name])[varying[name]] for run in (first_run, second_run))
    is_light_tailed = limits.require_no_correlation(name, a, b)
    _require_independent_means(a[is_light_tailed], b[is_light_tailed], name)


def _require_independent_means(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64], name: str) -> None:
    """Means (R,) over the chains of two seeds differ by as much as so many independent chains let them."""
    spread = np.sqrt((a.var(axis=1) + b.var(axis=1)) / a.shape[1])
    z = np.abs(a.mean(axis=1) - b.mean(axis=1)) / spread
    limit = limits.PRODUCT_SLACK * limits.normal_limit(max(z.size, 1))
    require(
        float(z.max(initial=0)) <= limit,
        f"means of {name} over {a.shape[1]} chains of two seeds differ by {z.max(initial=0):.0f} standard errors, at "
        f"most {limit:.1f} is chance: all chains share some random numbers",
    )


@PAIR_CHECKS.add("independence of batching", "anytime")
def check_batching(pair: Pair) -> None:
    """How a run is cut into calls, short ones or long ones, does not change it.

    Most are no multiples of unrolled turns, and in the long one of samplers a state is counted more often than 8
    bits hold.
    """
    _require_same_in_batches(pair, pair.chains, (([7], [11]), ([3, 4], [1, 3, 7]), ([1, 6], [2, 2, 2, 5])))
    if not pair.sampler:
        return
    _require_same_in_batches(pair, LONG_CHAINS, (([7], [509]), ([7], [150, 170, 189])))


def _require_same_in_batches(pair: Pair, chains: int, ways: tuple[tuple[list[int], list[int]], ...]) -> None:
    bound = pair.trial("dense")
    engine, start = bound.engine, bound.law.uniform_states(chains, 5)
    runs: list[Batches] = []
    for warm, lengths in ways:
        state = engine.init(SEED, start)
        for steps in warm:
            state = engine.warm(state, steps)
        runs.append(advance_batches(engine, engine.adapt(state, True), lengths)[1])
    for name, reduction in pair.method.reductions.items():
        whole, *others = (reduce_batches([batch[name] for _, batch in batches], reduction) for batches in runs)
        for other in others:
            close = np.allclose(whole, other, rtol=1e-8, atol=1e-8)
            steps = sum(ways[0][1])
            require(close, f"{steps} steps at once and in several batches give different {name} ({reduction})")


@PAIR_CHECKS.add("end of iterations", "iteration")
def check_end_of_iterations(pair: Pair) -> None:
    """Once `finished` says so, further steps change nothing; an iteration that goes on is reported as such, and what
    it bounds it bounds on the way."""
    # Cases on which iterations converge soon, and late.
    for case in SHORT:
        if case in pair.list_accepted_cases():
            _check_end_on_case(pair, case)


def _check_end_on_case(pair: Pair, case: str) -> None:
    bound = pair.trial(case)
    engine, method = bound.engine, pair.method
    trace = Trace(method.reductions)
    state, statistics = engine.advance(engine.init(SEED, bound.law.uniform_states(pair.chains, 6)), 1)
    trace.add(statistics, 1)
    early = method.estimate(bound.law.model, bound.tables, trace)
    if early.log_z_kind in ("lower", "upper"):
        compare_log_z(early, bound.law.log_z, FLOOR[pair.precision], 0.0, coupled=True)
    while trace.samples < MAX_STEPS and not (trace.samples and method.finished(trace)):
        state, statistics = engine.advance(state, 10)
        trace.add(statistics, 10)
    estimate = method.estimate(bound.law.model, bound.tables, trace)
    if not method.finished(trace):
        message = f"{MAX_STEPS} steps do not finish, and no doubt says {NOT_CONVERGED!r}"
        require(NOT_CONVERGED in estimate.doubts, message)
        return
    num_more = 4 * trace.samples
    _, statistics = engine.advance(state, num_more)
    later = Trace(method.reductions)
    later.add(statistics, num_more)
    after = method.estimate(bound.law.model, bound.tables, later)
    for field in ("marginals", "log_z"):
        value_at_end, later_value = getattr(estimate, field), getattr(after, field)
        if value_at_end is not None:
            moved = float(np.max(np.abs(np.asarray(value_at_end) - np.asarray(later_value))))
            require(moved <= 1e-3, f"{field} moves by {moved:.2g} after finished said that nothing would change")
            early_value = np.asarray(getattr(early, field))
            moved = 0.0
            if verdict(early) == "ok":
                moved = float(np.max(np.abs(early_value - np.asarray(later_value))))
            require(moved <= 1e-2, f"{field} moves by {moved:.2g} after one step, and no doubt says {NOT_CONVERGED!r}")


@PAIR_CHECKS.add("refusal, {}", over=lambda pair: pair.missing_precisions)
def check_precision_refusal(pair: Pair, precision: Precision) -> None:
    """A precision that the backend does not offer is refused."""
    model = law(pair.list_accepted_cases()[0]).model
    tables = pair.method.plan(model)
    require_refusal(lambda: pair.bind(model, tables, precision), f"precision={precision}")


def _run_single_steps(pair: Pair, seed: int, start: npt.NDArray[np.int8]) -> dict[str, np.ndarray]:
    """Statistics of a few steps, one by one: few states of a small model make many sequences."""
    engine = pair.trial("dense").engine
    state = engine.init(seed, start)
    if pair.anytime:
        state = run_burn_in(engine, state, 8)
    batches = advance_batches(engine, state, [1] * step_count(pair.method, 8))[1]
    return {name: np.stack([batch[name] for _, batch in batches]) for name in batches[0][1]}


def _flatten_rows(array: np.ndarray) -> npt.NDArray[np.float64]:
    return np.asarray(array, dtype=np.float64).reshape(-1, array.shape[-1])


def _find_varying_rows(array: np.ndarray) -> npt.NDArray[np.bool_]:
    """Which rows hold finite numbers, not all the same; logs of sums of nothing are -inf."""
    rows = _flatten_rows(array)
    return np.asarray(np.isfinite(rows).all(axis=1) & (rows.min(axis=1) < rows.max(axis=1)))


def _tree_leaves(tree: object) -> Iterator[Any]:
    if isinstance(tree, tuple | list):
        for node in tree:
            yield from _tree_leaves(node)
    elif not isinstance(tree, OnHost):
        # Contents of OnHost appear in estimates and are checked there.
        yield tree

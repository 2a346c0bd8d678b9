"""`spinbench.run` and `spinbench.exact`: from a model to a Result."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from spinbench.api import Engine, Estimate, Method, Precision
from spinbench.api.bounds import stated
from spinbench.api.trace import Trace
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.foundation.threads import one_blas_thread
from spinbench.inference import answers, registry, starts, validity
from spinbench.inference.budget import Budget, Tolerance, is_whole
from spinbench.inference.drive import answer_at_once, drive
from spinbench.inference.islands import Islands
from spinbench.inference.joint_validity import Joint
from spinbench.inference.kept.best import Best, ended_in
from spinbench.inference.kept.exports import Kept
from spinbench.inference.kept.files import file_for
from spinbench.inference.kept.taking import Keeping
from spinbench.inference.kernels import Wish
from spinbench.inference.marginals.container import held
from spinbench.inference.maximising.maximum import Asked, check_target, maximum
from spinbench.inference.origins import allowing_for, as_taken, in_terms_of_origin, pairs_as_given
from spinbench.inference.phases import Phases, is_long
from spinbench.inference.probing.weighed import by_draws
from spinbench.inference.result import Result, Seconds
from spinbench.inference.showing.progress import followed
from spinbench.inference.trials import check_step, planning
from spinbench.models import Model
from spinbench.models.magnitudes import check_range
from spinbench.models.simplification import Simplified, simplified
from spinbench.reference.memory import default_max_bytes


@contextmanager
def _memory_in_words() -> Iterator[None]:
    try:
        yield
    except MemoryError as error:
        raise SpinbenchError(f"out of memory: {error}; fewer chains or smaller settings take less") from error


@_memory_in_words()
def run(
    model: Model,
    method: str | Method = "gibbs",
    backend: str = "numba",
    budget: Budget | int | str = 10_000,
    *,
    chains: int = 16,
    seed: int = 0,
    burn_in: int | None = None,
    precision: Precision = "float64",
    device: str = "cpu",
    start: np.ndarray | str | None = None,
    checkpoints: int = 12,
    tier: Literal["native", "generic"] | None = None,
    kernel: str | None = None,
    simplify: bool = True,
    until: str | None = None,
    keep: int | None = None,
    keep_in: str | Path | None = None,
    target: str | None = None,
    **settings: Any,
) -> Result:
    """Run one method on one backend.

    Args:
        model: from `spinbench.load` or a generator.
        method: a registered name (with its settings as further keywords), or a Method, registered or not.
        backend: a registered name.
        budget: samples of each chain (10_000, "10000 samples") or wall-clock ("2 s", "500 ms").
        chains: advanced together; given by `start` where there is one.
        seed: non-negative; same seed, backend and budget in samples: same result.
        burn_in: samples to drop; by default a fifth of the samples or a tenth of the seconds.
        precision: "float64" or "float32", of the chains' arithmetic.
        device: "cpu" or "gpu".
        start: (N, C) states to start from, 0 and 1 of binary units, of which one in each 1-of-K group of the model is
            1, and 0 … K - 1 where the method takes a variable of K states as it is; by default uniform random states,
            or random ones of positive weight where a sampler takes hard zeros. They are of the model as it is, which is
            not simplified then. "wmb": different draws of that method, chosen by their weights, which are made while
            planning.
        checkpoints: at most so many entries of `Result.trajectory`; fewer of models of more than 170,000 variables.
        tier: "native": a kernel or nothing; "generic": the method's program or nothing; None: the first kernel that
            does not refuse, else the program. `Result.tier` says which ran, `Result.notes` why a kernel did not.
        kernel: the distribution whose kernel is asked; None: those of the method's own, then of the backend's.
        simplify: whether the method gets the model without what falls away exactly (`spinbench.models.simplify`), as
            `Result.notes` tells; the result is of the variables that were given either way.
        until: "se<0.01" or "log_z_se<0.1": end before the budget does, as soon as the largest error that is claimed of
            a marginal, or that of log Z, is below and no doubt names them. `Result.reached` says whether it was.
            Burn-in is the budget's, unless it is given.
        keep: states of each chain to keep, evenly spaced up to the end of the run, as `Result.states`.
        keep_in: a file in which they end, however many: they are never all in memory. .npz has "states" (S, C, N),
            .parquet a line a state, with the columns chain, draw, and one a variable.
        target: "map": look for the heaviest state, `Result.best_state`, in place of marginals and log Z. `exact` finds
            it by elimination; `gibbs` and `blocks` anneal their chains from hot to cold, once if the budget is in
            samples, which are sweeps then, else again and again; `pt` runs with a last rung at which nearly all
            variables stay. The verdict is ok if two of them ended equally well.

    Raises:
        SpinbenchError: unknown names or settings, unsupported combinations, a budget too small for a sample.
        InvalidResultError: what the method gave is no result, such as a probability above 1.
    """
    check_model(model)
    _check_numbers(chains=(chains, 1), seed=(seed, 0), checkpoints=(checkpoints, 1))
    _check_numbers(**({} if keep is None else {"keep": (keep, 1)}))
    file = None if keep_in is None else file_for(keep_in, keep)
    if not isinstance(simplify, bool):
        raise SpinbenchError(f"simplify={simplify!r} was given; true or false is needed")
    if precision not in ("float32", "float64"):
        raise SpinbenchError(f"precision={precision!r} was given; float32 and float64 are allowed")
    chosen, wish = _chosen(method, settings), Wish(tier, kernel)
    registry.check(chosen, backend, precision, wish)
    if chosen.anytime:
        check_range(chosen.name, model, precision)
    if target is not None:
        check_target(target, chosen, until=until, keep=keep, start=start)
        how = Asked(backend, Budget.parse(budget), chains, seed, precision, device, wish)
        return maximum(model, chosen, how)
    parsed = _with_tolerance(Budget.parse(budget, burn_in), until, chosen)
    if not chosen.stochastic:
        parsed = dataclasses.replace(parsed, burn_in=0)

    since = time.perf_counter()
    simple = simplified(model) if simplify and (start is None or isinstance(start, str)) else Simplified(model, model)
    given = as_taken(simple.model, chosen)
    sampler = chosen.anytime and chosen.stochastic and chosen.started
    if isinstance(start, str):
        starts.check_name(start, chosen)
        start = _drawn_start(given, start, chains, seed)
    elif start is not None:
        start = starts.merge_start(start, model, given)
    states = starts.made(chosen, given, chains, seed) if start is None else starts.checked(start, given)
    with one_blas_thread(), planning(chosen, given, parsed):
        tables = chosen.plan(given)
        planned = time.perf_counter()
        found = registry.bound(chosen, backend, given, tables, precision=precision, device=device, wish=wish)
    check_step(chosen, tables, found.tier, parsed, states.shape[1])
    warm_up = partial(chosen.warm_up, tables)
    engine, bound = found.engine, time.perf_counter()
    chains, numbers = states.shape[1], states.size if sampler else 0
    trace = Trace(chosen.reductions, chosen.batches(chains), chosen.counted_by, chains, numbers)

    who = f"{chosen.name} on {backend}"
    keeping = None if keep is None else Keeping(engine, chosen.reductions, given, states, parsed, keep, who, file)
    engine = engine if keeping is None else cast(Engine, keeping)
    joint = Joint(model=given, who=who, back=partial(pairs_as_given, simple))
    islands = Islands(given, seed, sampler)
    phases = Phases(given, sampler, is_long(parsed, states.shape[1]))

    def estimated(trace: Trace) -> Estimate:
        said = chosen.estimate(given, tables, trace)
        validity.check(said, given, who)
        said = validity.doubted(validity.owned(joint.taken(said, trace.samples), given))
        said = phases.doubted(islands.doubted(validity.widened_to(precision, said, given)))
        said = allowing_for(by_draws(given, said) if said.draws else said, simple.rounding)
        return held(in_terms_of_origin(given, said, trace.samples * states.shape[1], seed))

    with one_blas_thread(), followed(who, parsed, lambda: trace.samples, chains):
        if chosen.anytime:
            outcome = drive(
                engine,
                trace,
                estimated,
                parsed,
                start=states,
                seed=seed,
                warm_up=warm_up if start is None else starts.kept(warm_up, states, seed),
                finished=chosen.finished,
                checkpoints=checkpoints,
            )
        else:
            outcome = answer_at_once(engine, trace, estimated, start=states, seed=seed)
    estimate, tolerance = outcome.estimate, parsed.until
    return Result(
        marginals=estimate.marginals,
        marginals_se=estimate.marginals_se,
        log_z=estimate.log_z,
        log_z_se=estimate.log_z_se,
        log_z_kind=estimate.log_z_kind,
        bounds=stated(estimate.log_z, estimate.log_z_kind, estimate.bounds, chosen.name),
        ess=estimate.ess,
        r_hat=estimate.r_hat,
        joint=joint if given is simple.model else Joint(),  # of a conversion the edges are others
        draws=estimate.draws,
        kept=None if keeping is None else Kept(model, keeping.taken(seed)),
        best=_best(model, given, engine, outcome.state, chosen),
        seconds=Seconds(
            plan=planned - since,
            compile=bound - planned + outcome.compile_seconds,
            burn_in=outcome.burn_in_seconds,
            run=outcome.run_seconds,
            transfer=getattr(engine, "transfer_seconds", 0.0),
        ),
        samples=outcome.trace.samples,
        tier=found.tier,
        status=estimate.status,
        method=chosen.name,
        backend=backend,
        model=model.name,
        trajectory=tuple(outcome.trajectory),
        log_z_estimates=estimate.log_z_estimates,
        diagnostics=estimate.diagnostics,
        settings=dataclasses.asdict(chosen),  # type: ignore[call-overload]
        chains=states.shape[1] if chosen.anytime else 1,
        seed=seed,
        precision=precision,
        device=device,
        burn_in=outcome.burn_in,
        laps=outcome.laps,
        kernel=found.kernel,
        reached=tolerance.reached(estimate) if tolerance else None,
        notes=tuple(filter(None, [simple.note, tolerance.sentence(estimate) if tolerance else "", *found.notes])),
    )


def exact(
    model: Model,
    *,
    max_gib: float | None = None,
    budget: str | None = None,
    order: Sequence[int] | None = None,
    cache: bool = True,
    pairs: bool = False,
) -> Result:
    """Exact log Z and marginals, read from the disk cache where they are known.

    A factor graph that is too wide is taken without what sums out of it, and what memory does not hold a slice at a
    time. Marginals of what sums out are found part by part; they are NaN where they are out of reach even so, and
    `diagnostics["open_marginals"]` says of how many variables. Diagnostics have the order's "width" and "log2_entries",
    and what was predicted beforehand: "memory_gib", "predicted_seconds" and "slices".

    Args:
        model: any model.
        max_gib: memory that it may take, in GiB; None: half of what is free, container limits counted.
        budget: such as "60 s": an answer that is predicted to take longer is refused; None: ten minutes.
        order: the model's variables as they are to be eliminated, such as `Result.order`; None: the best order found.
        cache: whether to use the disk cache (folder SPINBENCH_CACHE_DIR, else the user's cache folder).
        pairs: whether to find `Result.pairs`, too, by elimination in NumPy; they are not cached.

    Raises:
        IntractableError: too wide; the message names the width, and the memory and the time it would take.
        ModelError: Z = 0, or `order` does not name each variable once.
        SpinbenchError: `max_gib` is no number from 0 to 2^33, or `budget` no time.
    """
    check_model(model)
    max_bytes, seconds = answers.bytes_allowed(max_gib), answers.seconds_allowed(budget)
    answer = answers.solve(model, max_bytes=max_bytes, seconds=seconds, order=order, cache=cache)
    return answers.result_of_exact(model, answer, max_bytes, pairs=pairs)


def _best(model: Model, taken: Model, engine: Engine, state: Any, method: Method) -> Best:
    if method.heaviest == "exact":
        return Best(model, exact=default_max_bytes())
    return Best(model, taken, ended_in(engine, state if method.stochastic and method.started else None))


def check_model(model: object) -> None:
    """Raises SpinbenchError unless it is a model; of a path, it says what reads it."""
    if not isinstance(model, Model):
        hint = f"; spinbench.load({model!r}) reads one" if isinstance(model, str | Path) else ""
        raise SpinbenchError(f"model={model!r} was given; a PairwiseModel or a FactorGraph is needed{hint}")


def _check_numbers(**given: tuple[object, int]) -> None:
    for name, (value, least) in given.items():
        if not is_whole(value, least):
            raise SpinbenchError(f"{name}={value!r} was given; a whole number, {least} or more, is needed")


def _with_tolerance(budget: Budget, until: str | None, method: Method) -> Budget:
    if until is not None:
        budget = dataclasses.replace(budget, until=Tolerance.parse(until))
    if budget.until is not None and not (method.anytime and method.stochastic):
        raise UnsupportedError(
            f"until='{budget.until}' was given; {method.name} makes no draws whose errors could fall"
        )
    return budget


def _chosen(method: str | Method, settings: dict[str, Any]) -> Method:
    if not isinstance(method, str | Method):
        raise SpinbenchError(f"method={method!r} was given; a name such as 'gibbs' or a Method is needed")
    if isinstance(method, str):
        return registry.make_method(method, settings)
    if settings:
        raise SpinbenchError(f"{', '.join(settings)} was given beside a Method, which has its settings; give its name")
    return method


def _drawn_start(model: Model, who: str, chains: int, seed: int) -> np.ndarray:
    backend = next(name for name in starts.PASSES if registry.support(who, name).runs)
    alone = dataclasses.replace(model, origin=None)  # whose draws are of its own variables
    drawn = run(alone, who, seed=seed, simplify=False, **starts.how(alone, backend))
    return starts.chosen(drawn.draws, model, chains, seed, who)

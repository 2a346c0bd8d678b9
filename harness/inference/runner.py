"""`spinbench.run` and `spinbench.exact`: from a model to a Result."""

from __future__ import annotations

import dataclasses
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from spinbench.api.trace import Trace
from spinbench.errors import SpinbenchError
from spinbench.foundation import deadline, defaults, platforms
from spinbench.inference import answers, binding, driver, initial_states, origins, preflight
from spinbench.inference.estimator import Estimator
from spinbench.inference.maximising.maximum import maximum
from spinbench.inference.notebook.progress import show_progress
from spinbench.inference.request import Options, Request, check_model, check_request
from spinbench.inference.stored_states.recorder import RecordingEngine
from spinbench.inference.stored_states.source import RunSource
from spinbench.models.simplification import Simplification, compute_simplification
from spinbench.reference.memory import default_max_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from spinbench.api import Engine, Method, Precision, State
    from spinbench.inference import result
    from spinbench.inference.budget import Budget
    from spinbench.models import Model


@contextmanager
def _memory_in_words() -> Iterator[None]:
    try:
        yield
    except MemoryError as error:
        raise SpinbenchError(f"out of memory: {error}; fewer chains or smaller settings take less") from error


@_memory_in_words()
def run(
    model: Model,
    method: str | Method = defaults.METHOD,
    backend: str = defaults.BACKEND,
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
) -> result.Result:
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
        until: "se<0.01" or "log_z_se<0.1": end before the budget does, as soon as the largest standard error of
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
    options = Options(
        chains=chains,
        seed=seed,
        burn_in=burn_in,
        precision=precision,
        device=device,
        start=start,
        checkpoints=checkpoints,
        tier=tier,
        kernel=kernel,
        simplify=simplify,
        until=until,
        keep=keep,
        keep_in=keep_in,
        target=target,
    )
    request = check_request(model, method, backend, budget, options, settings)
    if request.options.target is not None:
        return maximum(request)
    since = time.perf_counter()
    simple = Simplification(model, model)
    if request.simplifies:
        simple = compute_simplification(model)
    method_model = origins.model_for_method(simple.model, request.method)
    states = _starting_states(request, method_model)
    prepared = time.perf_counter() - since
    bound = binding.plan_and_bind(
        request.method,
        backend,
        method_model,
        precision=precision,
        device=device,
        wish=request.wish,
        support=request.support,
        budget=request.budget,
    )
    preflight.check_step(bound.method, bound.tables, bound.tier, request.budget, states.shape[1])
    estimator = Estimator(request, simple, bound, states.shape[1])
    recorder = _recorder(request, bound, states)
    at_once = request.method.kind == "direct" or (simple.is_solved and recorder is None)
    outcome = _drive(request, bound, states, estimator, recorder, at_once=at_once)
    source = RunSource(
        pairs=estimator.pairs(),
        model=model,
        method_model=method_model,
        last=_last_states(request.method, bound.engine, outcome.state),
        stored=None if recorder is None else recorder.last_states(seed),
        max_bytes=default_max_bytes() if request.method.heaviest == "exact" else None,
    )
    return estimator.result(outcome, prepared, source)


def exact(
    model: Model,
    *,
    max_gib: float | None = None,
    budget: str | None = None,
    order: Sequence[int] | None = None,
    cache: bool = True,
    pairs: bool = False,
) -> result.Result:
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


def _starting_states(request: Request, model: Model) -> np.ndarray:
    """(N, C) states that the chains start from, of the model as the method takes it."""
    start, options = request.options.start, request.options
    if start is None and request.method.kind in ("draws", "direct"):  # to which they do not matter
        return np.zeros((model.num_variables, options.chains), dtype=np.int8)
    if start is None:
        return initial_states.spread_starts(model, options.chains, options.seed, request.is_sampler)
    if not isinstance(start, str):
        return initial_states.check_start(initial_states.merge_start(start, request.model, model), model)
    initial_states.check_name(start, request.method)
    # Without its origin the model's draws are states of its own variables.
    alone = dataclasses.replace(model, origin=None)
    draws = run(alone, start, seed=options.seed, simplify=False, **initial_states.how(alone, start)).draws
    return initial_states.check_start(
        initial_states.resample_draws(draws, model, options.chains, options.seed, start), model
    )


def _recorder(request: Request, bound: binding.BoundMethod, states: np.ndarray) -> RecordingEngine | None:
    keep, budget = request.options.keep, request.budget
    if keep is None:
        return None
    return RecordingEngine(
        bound.engine, bound.method.reductions, bound.model, states, budget, keep, request.who, request.file
    )


def _drive(
    request: Request,
    bound: binding.BoundMethod,
    states: np.ndarray,
    estimator: Estimator,
    recorder: RecordingEngine | None,
    *,
    at_once: bool,
) -> driver.Run:
    """The run itself, or one step of it where that is enough for the answer."""
    method, seed, chains = request.method, request.options.seed, states.shape[1]
    engine = cast("Engine", recorder or bound.engine)
    numbers = states.size if request.is_sampler else 0
    trace = Trace(method.reductions, chains, numbers)
    warm_up: preflight.WarmUp = partial(method.warm_up, bound.tables)
    if request.options.start is not None:
        warm_up = initial_states.warm_up_then_restart(warm_up, states, seed)
    with (
        platforms.one_blas_thread(),
        deadline.budgets_on(cpu=bool(request.budget.cpu)),
        show_progress(request.who, request.budget, lambda: trace.samples, chains),
    ):
        if at_once:
            return driver.answer_at_once(engine, trace, estimator, start=states, seed=seed)
        return driver.drive(
            engine,
            trace,
            estimator,
            request.budget,
            start=states,
            seed=seed,
            warm_up=warm_up,
            finished=method.finished,
            checkpoints=request.options.checkpoints,
        )


def _last_states(method: Method, engine: Engine, state: State) -> np.ndarray | Callable[[], np.ndarray | None] | None:
    """(N, C) in which chains ended, or what gives them, where that would be compiled for it; None: there are none."""
    if state is None or not (method.kind == "sampler" and hasattr(engine, "states")):
        return None
    if getattr(engine, "compiles", False):
        return partial(engine.states, state)
    return engine.states(state)

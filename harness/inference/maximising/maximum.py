"""`spinbench.run(…, target="map")`: the heaviest state of a model by a method."""

from __future__ import annotations

import dataclasses
import time
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np

from spinbench.foundation import deadline, platforms
from spinbench.inference import batch_timings, binding, initial_states, origins, preflight, result
from spinbench.inference.maximising.annealing import (
    Annealed,
    IntArray,
    anneal,
    count_hits,
    hot_and_cold,
    run_on_cooled_model,
    scale_log_weights,
)
from spinbench.inference.notebook.progress import show_progress
from spinbench.inference.stored_states.exports import lift_states, log_weights
from spinbench.inference.stored_states.source import RunSource
from spinbench.mathematics.coordinate_ascent import ascend_to_maxima
from spinbench.reference.memory import default_max_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinbench.api import Method
    from spinbench.inference.request import Request
    from spinbench.models import Model


def maximum(request: Request) -> result.Result:
    """The heaviest state that was found, as `best_state` of a result without marginals and log Z.

    Raises:
        IntractableError: an exact one does not fit into the memory.
        BudgetError: the seconds are over before a chain has been annealed.
    """
    if request.method.heaviest == "exact":
        return _eliminate(request)
    return _run_chains(request)


def _eliminate(request: Request) -> result.Result:
    since = time.perf_counter()
    source, ended = RunSource(model=request.model, max_bytes=default_max_bytes()), Event()
    with show_progress(request.who, request.budget, lambda: int(ended.is_set()), 1):
        best = source.find_best_state(None, None)
        ended.set()
    return _result(
        request,
        request.method,
        RunSource(model=request.model, best=best),
        chains=1,
        seconds=batch_timings.Seconds(run=time.perf_counter() - since),
        notes={"numpy": ()}.get(request.backend, ("maxima are eliminated in NumPy, on every backend",)),
    )


def _run_chains(request: Request) -> result.Result:
    since = time.perf_counter()
    model, options = request.model, request.options
    method = request.method
    reduced = origins.model_for_method(model, method)
    hot, cold = hot_and_cold(reduced)
    start = initial_states.spread_starts(reduced, options.chains, options.seed, sampler=True)
    search: Callable[..., Annealed] = partial(anneal, hot=hot, cold=cold)
    target, runs, ladder = reduced, "annealings", {"beta_hot": hot}
    if request.method.heaviest == "cooled":
        search, target, runs, ladder = run_on_cooled_model, scale_log_weights(reduced, cold), "chains", {}
    prepared = time.perf_counter() - since
    bound = binding.plan_and_bind(
        method,
        request.backend,
        target,
        precision=options.precision,
        device=options.device,
        wish=request.wish,
        support=request.support,
        budget=request.budget,
    )
    preflight.check_step(method, bound.tables, bound.tier, request.budget, options.chains)
    with platforms.one_blas_thread(), deadline.budgets_on(cpu=bool(request.budget.cpu)):
        ended = search(request, bound, start)
    states = ascend_to_maxima(reduced, np.concatenate(ended.states, axis=1))
    logs = reduced.log_weight(states.T)
    hits = count_hits(logs)
    return _result(
        request,
        method,
        _source(model, reduced, states[:, int(logs.argmax())], bool(hits)),
        seconds=batch_timings.Seconds(
            plan=prepared + bound.plan_seconds,
            compile=bound.bind_seconds + ended.compile_seconds,
            run=ended.run_seconds,
        ),
        samples=ended.sweeps,
        tier=bound.tier,
        status={0: "no state of positive weight found", 1: "heaviest state found once"}.get(hits, "ok"),
        diagnostics={runs: float(len(logs)), **ladder, "hits": float(hits), "beta_cold": cold},
        kernel=bound.kernel,
        notes=bound.notes,
    )


def _source(model: Model, reduced: Model, lowered: IntArray, is_possible: bool) -> RunSource:
    """Of the heaviest state (N,), whose weight is that of the model that was given."""
    if not is_possible:
        return RunSource(model=model, best=(None, None))
    state = lift_states(reduced, lowered[None])[0]
    return RunSource(model=model, best=(state, float(log_weights(model, state))))


def _result(request: Request, method: Method, source: RunSource, **fields: Any) -> result.Result:
    """Without marginals and log Z."""
    options = request.options
    defaults: dict[str, Any] = {"samples": 1, "tier": "native", "status": "ok", "chains": options.chains}
    return result.Result(
        marginals=None,
        marginals_se=None,
        log_z=None,
        log_z_se=None,
        log_z_kind="estimate",
        ess=None,
        r_hat=None,
        source=source,
        method=method.name,
        backend=request.backend,
        model=request.model.name,
        settings=dataclasses.asdict(method),  # type: ignore[call-overload]
        seed=options.seed,
        precision=options.precision,
        device=options.device,
        **defaults | fields,
    )

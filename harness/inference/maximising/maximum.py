"""`spinbench.run(…, target="map")`: the heaviest state of a model by a method."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.api import Method, Precision, Tier
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.foundation.threads import one_blas_thread
from spinbench.inference import binding, registry, starts
from spinbench.inference.budget import Budget
from spinbench.inference.kernels import Wish
from spinbench.inference.maximising.annealing import anneal
from spinbench.inference.maximising.cooling import cool, cooled
from spinbench.inference.maximising.temperatures import hot_and_cold
from spinbench.inference.notebook.progress import followed
from spinbench.inference.origins import as_taken
from spinbench.inference.preflight import check_step
from spinbench.inference.result import Result, Seconds
from spinbench.inference.stored_states.exports import log_weights
from spinbench.inference.stored_states.source import RunSource
from spinbench.mathematics.coordinate_ascent import raised
from spinbench.models import Model
from spinbench.reference.memory import default_max_bytes

TARGETS = ("map",)
ALIKE = 1e-9
"""Relative difference of log weights up to which two annealings ended equally well."""


@dataclass(frozen=True)
class Asked:
    """How `run` was asked: its options of the same names."""

    backend: str
    budget: Budget
    chains: int
    seed: int
    precision: Precision
    device: str
    wish: Wish


def check_target(target: str, method: Method, **given: Any) -> None:
    """Whether a heaviest state is what is asked for, of a method that finds one.

    Args:
        target: of `run`.
        method: that was asked.
        given: options that are of no use then, as given.

    Raises:
        SpinbenchError: another target, or an option that would change nothing.
        UnsupportedError: the method does not look for states.
    """
    if target not in TARGETS:
        raise SpinbenchError(f"target={target!r} was given; 'map' is allowed, or none for marginals and log Z")
    if not method.heaviest:
        raise UnsupportedError(f"target='map' was given; {', '.join(_finders())} find it, and {method.name} does not")
    if useless := [name for name, value in given.items() if value is not None]:
        raise SpinbenchError(
            f"{', '.join(useless)} was given with target='map', where it would change nothing; leave it out"
        )


def maximum(model: Model, method: Method, asked: Asked) -> Result:
    """The heaviest state that was found, as `best_state` of a result without marginals and log Z.

    Raises:
        IntractableError: an exact one does not fit into the memory.
        BudgetError: the seconds are over before a chain has been annealed.
    """
    if method.heaviest == "exact":
        return _exactly(model, method, asked)
    return _by_chains(model, method.for_annealing() if method.heaviest == "annealed" else method, asked)


def _finders() -> list[str]:
    """Names of the methods that find heaviest states; of plugins those that can be loaded."""
    found = []
    for name in registry.names("methods"):
        with contextlib.suppress(SpinbenchError):
            if registry.method_class(name).heaviest:
                found.append(name)
    return found


def _exactly(model: Model, method: Method, asked: Asked) -> Result:
    since = time.perf_counter()
    source, ended = RunSource(model=model, max_bytes=default_max_bytes()), Event()
    with followed(f"{method.name} on {asked.backend}", asked.budget, lambda: int(ended.is_set()), 1):
        result = _result(model, method, asked, source, Seconds(), tier="native")
        best = result.best_state, result.best_log_weight
        ended.set()
    return dataclasses.replace(
        result,
        source=RunSource(model=model, best=best),
        chains=1,
        seconds=Seconds(run=time.perf_counter() - since),
        notes=() if asked.backend == "numpy" else ("maxima are eliminated in NumPy, on every backend",),
    )


def _by_chains(model: Model, method: Method, asked: Asked) -> Result:
    since = time.perf_counter()
    taken, cools = as_taken(model, method), method.heaviest == "cooled"
    hot, cold = hot_and_cold(taken)
    given = cooled(taken, cold) if cools else taken
    start = starts.dispersed(taken, asked.chains, asked.seed, sampler=True)
    prepared = time.perf_counter() - since
    how: dict[str, Any] = {"precision": asked.precision, "device": asked.device, "wish": asked.wish}
    bound = binding.plan_and_bind(method, asked.backend, given, budget=asked.budget, **how)
    check_step(method, bound.tables, bound.tier, asked.budget, asked.chains)
    engine, who = bound.engine, f"{method.name} on {asked.backend}"
    with one_blas_thread():
        if cools:
            ended = cool(engine, method, bound.tables, taken, start, asked.budget, seed=asked.seed, who=who)
        else:
            ended = anneal(engine, taken, start, hot, cold, asked.budget, seed=asked.seed, who=who)
    states = raised(taken, np.concatenate(ended.states, axis=1))
    logs = taken.log_weight(states.T)
    source, hits = _heaviest(model, taken, states, logs)
    seconds = Seconds(
        plan=prepared + bound.plan_seconds,
        compile=bound.bind_seconds + ended.compile_seconds,
        run=ended.run_seconds,
    )
    numbers = {"chains": float(len(logs))} if cools else {"annealings": float(len(logs)), "beta_hot": hot}
    numbers |= {"hits": float(hits), "beta_cold": cold}
    status = "ok" if hits > 1 else "heaviest state found once" if hits else "no state of positive weight found"
    return dataclasses.replace(
        _result(model, method, asked, source, seconds, tier=bound.tier),
        samples=ended.sweeps,
        status=status,
        diagnostics=numbers,
        kernel=bound.kernel,
        notes=bound.notes,
    )


def _heaviest(
    model: Model, taken: Model, states: npt.NDArray[np.int64], logs: npt.NDArray[np.float64]
) -> tuple[RunSource, int]:
    """Of annealed states (N, S) the heaviest, and how many weigh as much."""
    top = float(logs.max())
    if top == -np.inf:
        return RunSource(model=model, best=(None, None)), 0
    lowered = states[:, int(logs.argmax())]
    state = lowered if taken.origin is None else taken.origin.lift(lowered[None])[0]
    weight = float(log_weights(model, state))
    hits = int((logs >= top - ALIKE * max(abs(top), 1.0)).sum())
    return RunSource(model=model, best=(state, weight)), hits


def _result(model: Model, method: Method, asked: Asked, source: RunSource, seconds: Seconds, *, tier: Tier) -> Result:
    return Result(
        marginals=None,
        marginals_se=None,
        log_z=None,
        log_z_se=None,
        log_z_kind="estimate",
        ess=None,
        r_hat=None,
        source=source,
        seconds=seconds,
        samples=1,
        tier=tier,
        status="ok",
        method=method.name,
        backend=asked.backend,
        model=model.name,
        settings=dataclasses.asdict(method),  # type: ignore[call-overload]
        chains=asked.chains,
        seed=asked.seed,
        precision=asked.precision,
        device=asked.device,
    )

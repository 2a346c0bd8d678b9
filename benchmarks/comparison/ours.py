"""spinbench's side: planned and bound as `spinbench.run` does it; what is timed is `Engine.advance`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from comparison.answers import Answer
from comparison.contender import Contender
from comparison.problems import Model, stacked
from spinbench.api import Engine, Precision
from spinbench.api.trace import Trace
from spinbench.inference import registry
from spinbench.inference.drive import WINDOWS
from spinbench.models import PairwiseModel, to_pairwise


def sampler(
    model: PairwiseModel,
    method: str,
    backend: str,
    *,
    asked: str,
    chains: int,
    samples: int,
    work: float,
    precision: Precision = "float32",
    burn_in: int = 300,
    bar: float | None = None,
    check_model: PairwiseModel | None = None,
    resolution: str = "",
    **settings: Any,
) -> Contender:
    """A sampling method: each call advances all chains by so many samples and accumulates marginals at each.

    Every round starts new chains from random states and burns them in before the clock runs.

    Args:
        work: units of the row in one call.
        resolution: what the table calls the precision, if not that.
        check_model: judged in place of the timed model, whose exact answer is not known.
    """
    chosen = registry.make_method(method, settings)
    since = time.process_time()
    model = PairwiseModel.from_edges(model.biases, model.edges, model.couplings)  # building it is timed, too
    tables = chosen.plan(model)
    engine = registry.bind(chosen, backend, model, tables, precision=precision)
    built = time.process_time() - since

    def answer(statistics: Any) -> Answer:
        return _estimate(chosen, model, tables, statistics, samples)

    def check() -> Sequence[Answer]:
        assert check_model is not None
        other = sampler(
            check_model, method, backend, asked=asked, chains=chains, samples=samples, work=work, precision=precision,
            burn_in=burn_in, **settings,
        )  # fmt: skip
        return [other.answer(other.call(other.prepare(number))) for number in range(5)]

    return Contender(
        library=f"spinbench {backend}",
        distribution="spinbench",
        precision=resolution or precision,
        asked=asked,
        work=work,
        prepare=lambda number: burnt_in(engine, model.num_variables, chains, burn_in, number),
        call=lambda state: engine.advance(state, samples)[1],
        answer=answer if check_model is None else lambda _: Answer(),
        build_seconds=built,
        compiles=True,
        check=None if check_model is None else check,
        share=1.0 if check_model is None else math.nan,
        bar=bar,
    )


def burnt_in(engine: Engine, n: int, chains: int, burn_in: int, seed: int) -> Any:
    """Chains from uniform random states after burn-in, with the windows in which settings are adapted."""
    start = np.random.default_rng(seed).integers(0, 2, (n, chains), dtype=np.int8)
    state = engine.init(seed, start)
    done = 0
    for end in WINDOWS:
        steps = math.floor(burn_in * end) - done
        state = engine.warm(state, steps) if steps else state
        state = engine.adapt(state, end == WINDOWS[-1])
        done += steps
    return state


def _estimate(method: Any, model: PairwiseModel, tables: Any, statistics: Any, samples: int) -> Answer:
    trace = Trace(method.reductions)
    trace.add(statistics, samples)
    with np.errstate(all="ignore"):  # one batch has no standard error
        return Answer(np.asarray(method.estimate(model, tables, trace).marginals))


def solver(
    model: Model, method: str, backend: str = "numba", *, asked: str, bar: float | None = None, **settings: Any
) -> Contender:
    """A deterministic method; each call is a whole solution, with everything that depends on the model but planning."""
    chosen = registry.make_method(method, settings)
    given = to_pairwise(model) if chosen.takes == "pairwise" else model
    since = time.process_time()
    tables = chosen.plan(given)
    engine = registry.bind(chosen, backend, given, tables, precision="float64")
    built = time.process_time() - since

    def call(state: Any) -> Any:
        state, statistics = engine.advance(state, 1 if not chosen.anytime else 10_000)
        trace = Trace(chosen.reductions)
        trace.add(statistics, 1)
        return chosen.estimate(given, tables, trace)

    def answer(estimate: Any) -> Answer:
        return Answer(stacked(model, estimate.marginals), estimate.log_z)

    return Contender(
        library=f"spinbench {backend}",
        distribution="spinbench",
        precision="float64",
        asked=asked,
        work=1.0,
        prepare=_starts(engine, given),
        call=call,
        answer=answer,
        build_seconds=built,
        compiles=True,
        bar=bar,
    )


def _starts(engine: Engine, model: Model) -> Callable[[int], Any]:
    n = len(model.cardinalities)
    return lambda number: engine.init(number, np.zeros((n, 1), dtype=np.int8))

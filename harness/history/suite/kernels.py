"""The kernels on their own: CPU seconds of one update, gradient, sample, message or elimination, `kernels.track_*`.

    asv run --bench '^kernels'            a minute; a regression of 10 % shows with `asv compare --factor 1.05`

A benchmark's values are those of 5 repeats, each the best of 10 calls of at least 20 ms, by the CPU's clock, so that
other processes on the machine count little. asv keeps the values, and tells changes from noise by them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

REPEATS, CALLS, SHORTEST = 5, 10, 0.02

Advance = Callable[[int], float]
"""From a number of steps to the work done in them, in units of the benchmark."""


def _seconds(advance: Advance, repeats: int = REPEATS, calls: int = CALLS) -> dict[str, Any]:
    """Samples of CPU seconds a unit of work, as asv takes them."""
    steps = 1
    while calls > 1:
        since = time.process_time()
        advance(steps)
        if time.process_time() - since >= SHORTEST:
            break
        steps *= 2
    samples = []
    for _ in range(repeats):
        best = float("inf")
        for _ in range(calls):
            since = time.process_time()
            work = advance(steps)
            best = min(best, (time.process_time() - since) / work)
        samples.append(float(f"{best:.4g}"))
    return {"samples": samples, "number": 1}


def _model(name: str) -> Any:
    import spinbench
    from spinbench.models import generators

    kind, _, size = name.partition(" ")
    if kind == "grid":
        return generators.grid(int(size), int(size), c1=0.5, c2=0.5)
    if kind == "dense":
        return generators.sherrington_kirkpatrick(int(size), beta=1.0)
    return spinbench.load(name)


def _sampler(
    model: Any, method: str, backend: str, precision: str, chains: int, **settings: Any
) -> Callable[[int], None]:
    """Burnt-in chains that advance by so many samples."""
    import numpy as np

    from spinbench.inference import binding, registry

    chosen = registry.make_method(method, {"log_z": "none", **settings})
    bound = binding.bind(chosen, backend, model, chosen.plan(model), precision=precision).engine  # type: ignore[arg-type]
    start = np.random.default_rng(0).integers(0, 2, (model.num_variables, chains), dtype=np.int8)
    state = bound.adapt(bound.warm(bound.init(0, start), 50), True)

    def advance(steps: int) -> None:
        nonlocal state
        state, _ = bound.advance(state, steps)

    return advance


def track_gibbs_update(case: str, precision: str) -> Any:
    """Means of s are accumulated every sweep."""
    model, _, number = case.partition(" × ")
    given, chains = _model(model), int(number)
    advance = _sampler(given, "gibbs", "numba", precision, chains, marginals="empirical")

    def work(steps: int) -> float:
        advance(steps)
        return float(steps * chains * given.num_variables)

    return _seconds(work)


def track_dhmc_gradient(form: str, chains: int) -> Any:
    """10 × 10 grid, float64, five leapfrog steps a sample: a fifth of a sample's time."""
    steps_a_sample = 5
    step = {"step_size": 0.1} if form == "identity" else {"step_size": 0.3, "diagonal": "dd"}
    settings = {"form": form, "leapfrog_steps": steps_a_sample, **step}
    advance = _sampler(_model("grid 10"), "dhmc", "numba", "float64", chains, **settings)

    def work(steps: int) -> float:
        advance(steps)
        return float(steps) * chains * steps_a_sample

    return _seconds(work)


def track_block_gibbs_sample(form: str, precision: str) -> Any:
    """10 × 10 grid, one chain."""
    advance = _sampler(_model("grid 10"), "block_gibbs", "numba", precision, 1, form=form)

    def work(steps: int) -> float:
        advance(steps)
        return float(steps)

    return _seconds(work)


def track_bp_message(model: str) -> Any:
    """From uniform messages to convergence, over iterations times messages."""
    import numpy as np

    from spinbench.inference import binding, registry

    given = _model(model)
    chosen = registry.make_method("bp", {})
    bound = binding.bind(chosen, "numba", given, chosen.plan(given), precision="float64").engine
    start = np.zeros((given.num_variables, 1), dtype=np.int8)

    def work(steps: int) -> float:
        iterations = 0.0
        for seed in range(steps):
            iterations += float(bound.advance(bound.init(seed, start), 1000)[1]["iterations"][0])
        return float(iterations * 2 * given.num_edges)

    return _seconds(work)


def track_elimination(model: str) -> Any:
    """log Z and all marginals, the choice of an order included."""
    from spinbench.inference.answers import solve

    given = _model(model)
    slow = model == "grid 20"

    def work(steps: int) -> float:
        for _ in range(steps):
            solve(given, max_bytes=2**32, cache=False)
        return float(steps)

    return _seconds(work, repeats=3 if slow else REPEATS, calls=1 if slow else CALLS)


def _describe(track: Callable[..., Any], unit: str, title: str, **axes: list[Any]) -> None:
    """What asv reads. The default version would be a hash of the source code."""
    attributes = {
        "params": list(axes.values()),
        "param_names": list(axes),
        "unit": unit,
        "pretty_name": title,
        "version": "1",
        "timeout": 120,
    }
    for name, value in attributes.items():
        setattr(track, name, value)


_PRECISIONS = ["float32", "float64"]
_CASES = ["grid 10 × 1", "grid 10 × 100", "grid 300 × 1", "dense 1000 × 1"]
_describe(track_gibbs_update, "s/update", "Gibbs update", case=_CASES, precision=_PRECISIONS)
_describe(track_dhmc_gradient, "s/gradient", "DHMC gradient", form=["identity", "sparse"], chains=[1, 100])
_describe(
    track_block_gibbs_sample,
    "s/sample",
    "block Gibbs sample",
    form=["harmonium", "identity", "sparse"],
    precision=_PRECISIONS,
)
_describe(track_bp_message, "s/message", "BP message", model=["grid 50", "grid 200"])
_describe(
    track_elimination,
    "s",
    "exact log Z and marginals",
    model=["grid 10", "grid 20", "uai14/Grids_12", "uai14/Segmentation_12"],
)

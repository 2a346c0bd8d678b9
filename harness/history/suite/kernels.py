"""The kernels on their own: CPU seconds of one update, gradient, sample, message or elimination, `kernels.track_*`.

    asv run --bench '^kernels'            two minutes; a regression of 10 % shows with `asv compare --factor 1.05`

A benchmark's values are those of 5 repeats, each the best of 10 calls of at least 20 ms, by the CPU's clock, so that
other processes on the machine count little. asv keeps the values, and tells changes from noise by them. `benchmarks/`
times kernels by the same functions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spinbench.api.types import Tables
    from spinbench.methods.blocks.tables import Tables as BlockTables
    from spinbench.models import FactorGraph, Model

# Repeated measurements, calls in each, and the shortest call in seconds.
N_REPEATS, N_CALLS, MIN_CALL_SECONDS = 5, 10, 0.02

Samples = dict[str, object]
"""CPU seconds of calls, as asv takes samples."""
# Advances by a number of steps and returns the work in the benchmark's unit.
Advance = Callable[[int], float]
Track = Callable[..., Samples]
_PRECISIONS = ["float32", "float64"]
_CASES = ["grid 10 × 1", "grid 10 × 100", "grid 300 × 1", "dense 1000 × 1"]


def step_seconds(
    advance: Advance, shortest: float = MIN_CALL_SECONDS, clock: Callable[[], float] = time.process_time
) -> Iterator[float]:
    """Seconds of a unit of work, without end: of calls of as many steps as take `shortest` seconds or more."""
    steps = 1
    while True:
        since = clock()
        work = advance(steps)
        spent = clock() - since
        if spent >= shortest:
            yield spent / work
        else:
            steps *= 2


def _time_samples(
    advance: Advance, repeats: int = N_REPEATS, calls: int = N_CALLS, shortest: float = MIN_CALL_SECONDS
) -> Samples:
    """CPU seconds of a unit of work, as asv takes samples."""
    seconds = step_seconds(advance, shortest)
    best = [min(next(seconds) for _ in range(calls)) for _ in range(repeats)]
    return {"samples": [float(f"{value:.4g}") for value in best], "number": 1}


def load_model(name: str) -> Any:
    """A model that is generated, "KIND SIZE", or one of the catalogue."""
    import spinbench
    from spinbench.models import generators

    kind, _, size = name.partition(" ")
    match kind:
        case "grid":
            return generators.grid(int(size), int(size), c1=0.5, c2=0.5)
        case "dense":
            return generators.sherrington_kirkpatrick(int(size), beta=1.0)
        case "ferromagnet":
            return generators.grid(int(size), int(size), 0.1, 0.44, seed=0)
        case "strong":
            return generators.grid(int(size), int(size), 1.0, 1.0, seed=1)
        case "glass":
            return generators.regular_glass(int(size), 8, 0.5, "gaussian", 0.3, seed=1)
        case "ternary":
            return three_state_torus(int(size))
    return spinbench.load(name)


def three_state_torus(size: int = 20) -> FactorGraph:
    """A square torus of variables of three states with random tables."""
    import numpy as np

    from spinbench.models import FactorGraph

    rng = np.random.default_rng(0)
    variables = np.arange(size * size).reshape(size, size)
    neighbours = [np.stack([variables, np.roll(variables, -1, axis)], -1).reshape(-1, 2) for axis in (0, 1)]
    edges = np.concatenate(neighbours).tolist()
    factors = [(tuple(edge), 0.5 * rng.normal(size=(3, 3))) for edge in edges]
    return FactorGraph.from_log_tables([3] * size**2, factors)


class Sampler:
    """Chains of a method on a backend, from uniform random states.

    Attributes:
        plan: what the method planned for the model.
    """

    def __init__(
        self, model: Model, method: str, backend: str = "numba", chains: int = 1, burn_in: int = 50, **options: Any
    ) -> None:
        """`options` are `precision`, `device`, and settings of the method."""
        import numpy as np

        from spinbench.inference import binding, registry

        where = {name: options.pop(name) for name in ("precision", "device") if name in options}
        configured_method = registry.make_method(method, options)
        self.plan: Tables = configured_method.plan(model)
        self._engine = binding.bind(configured_method, backend, model, self.plan, **where).engine
        rng, states = np.random.default_rng(0), np.array(model.cardinalities)[:, None]
        start = rng.integers(0, states, (model.num_variables, chains), np.int8)
        self._state = self._engine.adapt(self._engine.warm(self._engine.init(0, start), burn_in), True)

    def advance(self, steps: int) -> int:
        """So many steps of all chains; returns their number."""
        self._state, _ = self._engine.advance(self._state, steps)
        return steps


def _benchmark(unit: str, title: str, **axes: Sequence[object]) -> Callable[[Track], Track]:
    """A benchmark with the attributes that asv reads. The default version would be a hash of the source code."""

    def decorate(track: Track) -> Track:
        names = {"params": list(axes.values()), "param_names": list(axes), "unit": unit, "pretty_name": title}
        vars(track).update(names, version="1", timeout=120)
        return track

    return decorate


@_benchmark("s/update", "Gibbs update", case=_CASES, precision=_PRECISIONS)
def track_gibbs_update(case: str, precision: str) -> Samples:
    """Means of s are accumulated every sweep."""
    name, _, number = case.partition(" × ")
    model, chains = load_model(name), int(number)
    settings: dict[str, Any] = {"precision": precision, "marginals": "empirical", "log_z": "none"}
    sampler = Sampler(model, "gibbs", chains=chains, **settings)
    return _time_samples(lambda steps: float(sampler.advance(steps) * chains * model.num_variables))


@_benchmark("s/gradient", "DHMC gradient", form=["identity", "sparse"], chains=[1, 100])
def track_dhmc_gradient(form: str, chains: int) -> Samples:
    """10 × 10 grid, float64, five leapfrog steps a sample: a fifth of a sample's time."""
    steps_a_sample = 5
    step = {"step_size": 0.3, "diagonal": "dd"}
    if form == "identity":
        step = {"step_size": 0.1}
    settings: dict[str, Any] = {"form": form, "leapfrog_steps": steps_a_sample, "log_z": "none", **step}
    sampler = Sampler(load_model("grid 10"), "dhmc", chains=chains, **settings)
    return _time_samples(lambda steps: float(sampler.advance(steps) * chains * steps_a_sample))


@_benchmark("s/sample", "block Gibbs sample", form=["harmonium", "identity", "sparse"], precision=_PRECISIONS)
def track_block_gibbs_sample(form: str, precision: str) -> Samples:
    """10 × 10 grid, one chain."""
    sampler = Sampler(load_model("grid 10"), "block_gibbs", form=form, precision=precision, log_z="none")
    return _time_samples(sampler.advance)


# Label (with the unit of work): model, method, number of chains or ladders, settings.
HARD_CASES: dict[str, tuple[str, str, int, dict[str, Any]]] = {
    "gibbs, 20 x 20 torus of 3 states, an update": ("ternary 20", "gibbs", 16, {}),
    "blocks, 20 x 20 torus of 3 states, a table entry": ("ternary 20", "blocks", 16, {"size": 81, "log_z": "none"}),
    "swendsen_wang, 64 x 64 grid, a variable": ("ferromagnet 64", "swendsen_wang", 16, {}),
    "pt, 10 x 10 grid, 192 replicas, an update": ("strong 10", "pt", 16, {}),
    "gibbs, 10 x 10 grid, 192 chains, an update": ("strong 10", "gibbs", 192, {"log_z": "none"}),
    "pt, 100 variables of 8 neighbours, 176 replicas, an update": ("glass 100", "pt", 16, {}),
    "gibbs, 100 variables of 8 neighbours, 176 chains, an update": ("glass 100", "gibbs", 176, {"log_z": "none"}),
}


@_benchmark("s", "samplers for hard models", case=list(HARD_CASES))
def track_hard_sampler(case: str) -> Samples:
    """The samplers for hard models, float64."""
    name, method, chains, settings = HARD_CASES[case]
    model = load_model(name)
    sampler = Sampler(model, method, chains=chains, burn_in=2, **settings)
    units = chains * model.num_variables
    if method == "blocks":
        units = chains * _count_table_entries(sampler.plan)
    if method == "pt":
        units *= len(sampler.plan.betas)
    return _time_samples(lambda steps: float(sampler.advance(steps) * units))


def _count_table_entries(plan: BlockTables) -> int:
    """Entries of the tables of all buckets of a sweep's blocks."""
    sizes = plan.cards.prod(axis=1)
    return int(sum(sizes[plan.starts[block] : plan.starts[block + 1]].sum() for block in plan.sweep))


@_benchmark("s/message", "BP message", model=["grid 50", "grid 200"])
def track_bp_message(model: str) -> Samples:
    """From uniform messages to convergence, over iterations times messages."""
    import numpy as np

    from spinbench.inference import binding, registry

    graph = load_model(model)
    chosen = registry.make_method("bp", {})
    bound = binding.bind(chosen, "numba", graph, chosen.plan(graph), precision="float64").engine
    start = np.zeros((graph.num_variables, 1), dtype=np.int8)

    def work(steps: int) -> float:
        iterations = 0.0
        for seed in range(steps):
            iterations += float(bound.advance(bound.init(seed, start), 1000)[1]["iterations"][0])
        return float(iterations * 2 * graph.num_edges)

    return _time_samples(work)


@_benchmark("s", "exact log Z and marginals", model=["grid 10", "grid 20", "uai14/Grids_12", "uai14/Segmentation_12"])
def track_elimination(model: str) -> Samples:
    """log Z and all marginals, the choice of an order included."""
    from spinbench.inference.answers import solve

    graph = load_model(model)

    def work(steps: int) -> float:
        for _ in range(steps):
            solve(graph, max_bytes=2**32, cache=False)
        return float(steps)

    if model == "grid 20":
        return _time_samples(work, repeats=3, calls=1, shortest=0.0)
    return _time_samples(work)

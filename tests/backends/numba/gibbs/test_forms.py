"""Forms of the Numba kernel are one sampler: of the same random numbers they make the chains of plain NumPy."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import pytest
from small_graphs import random_pairs

from spinbench.backends.numba import NumbaBackend
from spinbench.backends.numba.gibbs import pattern_lanes, sites
from spinbench.backends.numba.gibbs.dense import Dense
from spinbench.backends.numba.gibbs.kernel import GibbsKernel
from spinbench.backends.numba.gibbs.lanes import Lanes
from spinbench.backends.numba.gibbs.pattern_lanes import decide
from spinbench.backends.numba.gibbs.pattern_rows import PatternRows
from spinbench.backends.numba.gibbs.single_updates import SingleUpdates
from spinbench.backends.numba.simd.memory import address
from spinbench.backends.numba.simd.random import GOLDEN_GAMMA, chain_keys
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import PairwiseModel, generators, lattices

SEED, CHAINS, WARM, BATCHES = 9, 34, 2, (66, 5)


def of_edges(n: int, edges: Any, seed: int, scale: float = 1.0) -> PairwiseModel:
    rng = np.random.default_rng(seed)
    return PairwiseModel.from_edges(rng.normal(size=n), edges, scale * rng.normal(size=len(edges)))


def grid(rows: int, columns: int, seed: int) -> PairwiseModel:
    return of_edges(rows * columns, lattices.grid_edges(rows, columns), seed)


def ring(n: int, reach: int) -> PairwiseModel:
    """Every variable is coupled to the `reach` next ones on a ring: 2 reach neighbours each, and many colours."""
    return of_edges(n, [(i, (i + d) % n) for i in range(n) for d in range(1, reach + 1)], n + reach, 0.5)


MODELS = {
    "grid": grid(7, 8, 0),
    "sparse": random_pairs(40, 0.1, 1.0, 1),  # three colours and degrees from 0 to 9
    "complete": random_pairs(12, 1.0, 1.0, 2),
}
FEW_NEIGHBOURS = {
    "wide grid": grid(15, 18, 0),
    "ring": ring(21, 2),
    "six": ring(23, 3),
    "tree": generators.tree(30, seed=1),
    "alone": PairwiseModel.from_edges([0.5, -60.0, 60.0], np.zeros((0, 2), dtype=int), []),
}
CLASSES = {
    "lanes": Lanes,
    "sites": sites.Sites,
    "dense": Dense,
    "pattern_lanes": pattern_lanes.PatternLanes,
    "pattern_rows": PatternRows,
    "single_updates": SingleUpdates,
}
PATTERNS = ("pattern_lanes", "pattern_rows")
FIELDS = ("lanes", "sites", "dense")
RANDOM = {"scan": "random", "log_z": "chib"}
FORMS: list[tuple[str, dict[str, Any]]] = [
    *((form, {"log_z": "auto"}) for form in (*FIELDS, *PATTERNS)),
    *(("single_updates", {**RANDOM, "sample": sample}) for sample in ("sweep", "update")),
]
ALL = MODELS | FEW_NEIGHBOURS


def forced(model: PairwiseModel, method: Gibbs, form: str, precision: Any = "float64") -> GibbsKernel:
    kernel = GibbsKernel(method, NumbaBackend(precision=precision), model, method.plan(model))
    kernel._form = lambda _: CLASSES[form]
    return kernel


def start_of(model: PairwiseModel, chains: int = CHAINS) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2, (model.num_variables, CHAINS)).astype(np.int8)[:, :chains]


def run(
    model: PairwiseModel,
    method: Gibbs,
    form: str,
    precision: str = "float64",
    chains: int = CHAINS,
    batches: Any = BATCHES,
) -> list[dict[str, np.ndarray]]:
    """(batch, N, C) statistics with the form forced."""
    kernel = forced(model, method, form, precision)
    state = kernel.warm(kernel.init(SEED, start_of(model, chains)), WARM)
    seen = []
    for steps in batches:
        state, statistics = kernel.advance(state, steps)
        seen.append(statistics)
    return seen


def mix(z: np.ndarray) -> np.ndarray:
    """SplitMix64's hash of an array of uint64."""
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def draw_by_fields(counter: int, p: np.ndarray) -> np.ndarray:
    """u < p, by 53 bits of one hash for each chain."""
    begin, step = chain_keys(SEED, CHAINS)
    with np.errstate(over="ignore"):
        u = (mix(begin + step * np.uint64(counter)) >> np.uint64(11)) * 2.0**-53
    return u < p


def draw_by_patterns(counter: int, p: np.ndarray) -> np.ndarray:
    """64 bits below p: 16 of a hash that four chains share, then those of a hash of the hash."""
    part = np.arange(CHAINS) % 4
    keys = chain_keys(SEED, -(-CHAINS // 32) * 8)[:, np.arange(CHAINS) // 4]
    with np.errstate(over="ignore"):
        word = mix(keys[0] + keys[1] * np.uint64(counter))
        rest = mix(word + GOLDEN_GAMMA * (part + 1).astype(np.uint64))
    high = (word >> (part * 16).astype(np.uint64)) & np.uint64(2**16 - 1)
    threshold = np.array([min(int(x * 2.0**64), 2**64 - 1) for x in p], dtype=np.uint64)
    return ((high << np.uint64(48)) | (rest >> np.uint64(16))) < threshold


def log_transition(mode: np.ndarray, a: np.ndarray, W: np.ndarray, s: np.ndarray) -> np.ndarray:
    """log T(s* <- s) by its definition."""
    forced, level = s.copy(), np.zeros(s.shape[1])
    for i in range(len(a)):
        level -= np.logaddexp(0.0, (1 - 2 * mode[i]) * (a[i] + W[i] @ forced))
        forced[i] = mode[i]
    return level


def plain(model: PairwiseModel, method: Gibbs, draw: Any, batches: tuple[int, ...]) -> list[dict[str, np.ndarray]]:
    """The same by the definitions, in float64."""
    tables, n = method.plan(model), model.num_variables
    a, W = model.biases[tables.order], model.dense()[np.ix_(tables.order, tables.order)]
    s, seen, t = start_of(model)[tables.order].astype(float), [], 0
    for steps in (WARM, *batches):
        p_sum, s_sum, log_t = np.zeros_like(s), np.zeros_like(s), np.full(CHAINS, -np.inf)
        for _ in range(steps):
            if method.records_log_t:
                log_t = np.logaddexp(log_t, log_transition(tables.mode, a, W, s))
            for i in range(n):
                p = 1 / (1 + np.exp(-(a[i] + W[i] @ s)))
                s[i] = draw(t * (n + 1) + i, p)
                p_sum[i] += p
            s_sum += s
            t += 1
        seen.append({"p": p_sum, "s": s_sum, "log_t": log_t})
    return seen[1:]


@pytest.mark.parametrize("scan", ["chromatic", "raster"])
@pytest.mark.parametrize(
    ("form", "name"),
    [*((form, name) for form in FIELDS for name in MODELS), *((f, name) for f in PATTERNS for name in FEW_NEIGHBOURS)],
)
def test_chains_are_those_of_the_definitions(form: str, name: str, scan: Any) -> None:
    model, draw = ALL[name], draw_by_patterns if form == "pattern_lanes" else draw_by_fields
    batches = (9, 5) if form in PATTERNS else BATCHES  # sums of fields are flushed every 64 steps
    for method in (
        Gibbs(scan=scan, log_z="auto" if form in PATTERNS else "chib"),
        Gibbs(scan=scan, marginals="empirical"),
    ):
        for one, other in zip(
            plain(model, method, draw, batches), run(model, method, form, batches=batches), strict=True
        ):
            for key in method.reductions:
                assert other[key] == pytest.approx(one[key], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("marginals", ["rao_blackwell", "empirical"])
@pytest.mark.parametrize(("form", "settings"), FORMS, ids=str)
def test_neither_chains_beside_nor_threads_nor_batches_change_a_chain(
    form: str, settings: dict[str, Any], marginals: Any
) -> None:
    model = MODELS["grid" if form in PATTERNS else "sparse"]
    method, threaded = Gibbs(marginals=marginals, **settings), Gibbs(marginals=marginals, threads=3, **settings)
    (whole,), (few,) = (run(model, method, form, chains=chains, batches=(300,)) for chains in (CHAINS, 3))
    (shared,), parts = run(model, threaded, form, batches=(300,)), run(model, method, form, batches=(1, 256, 43))
    for key in method.reductions:
        total = np.logaddexp.reduce if key == "log_t" else np.sum
        np.testing.assert_array_equal(shared[key], whole[key])
        np.testing.assert_allclose(few[key], whole[key][..., :3], rtol=1e-12)
        np.testing.assert_allclose(total([part[key] for part in parts], axis=0), whole[key], rtol=1e-12)


@pytest.mark.parametrize("form", ["sites", "dense"])
def test_forms_agree_in_single_precision(form: str) -> None:
    """The same chains but for a number in 10^6 that falls between two roundings: the first sweeps are equal."""
    method, model = Gibbs(marginals="empirical", log_z="none"), MODELS["sparse"]
    both = (run(model, method, each, "float32", batches=(1, 1, 1)) for each in ("lanes", form))
    for one, two in zip(*both, strict=True):
        np.testing.assert_array_equal(one["s"], two["s"])


@pytest.mark.parametrize(("precision", "atol"), [("float64", 1e-10), ("float32", 1e-4)])
@pytest.mark.parametrize("chains", [1, 9, CHAINS])
@pytest.mark.parametrize("scan", ["chromatic", "raster"])
@pytest.mark.parametrize("form", [*FIELDS, "pattern_rows"])
def test_looks_see_transition_probabilities(form: str, scan: Any, chains: int, precision: str, atol: float) -> None:
    """log T(s* <- s) by its definition, and backwards what vectors of chains see."""
    method = Gibbs(scan=scan)
    for model in (MODELS["grid"],) if form == "pattern_rows" else MODELS.values():
        start, tables = start_of(model, chains), method.plan(model)
        a, W = model.biases[tables.order], model.dense()[np.ix_(tables.order, tables.order)]
        seen = []
        for each in (form, "lanes"):
            kernel = forced(model, method, each, precision)
            seen.append(kernel.look(kernel.prepare(kernel.init(3, start))))
        expected = log_transition(tables.mode, a, W, start[tables.order].astype(float))
        np.testing.assert_allclose(seen[0]["log_t"], expected, rtol=0, atol=atol)
        np.testing.assert_allclose(seen[0]["log_r"], seen[1]["log_r"], rtol=0, atol=atol)


@pytest.mark.parametrize("form", [*FIELDS, "single_updates"])
def test_states_are_handed_over_in_a_byte_each(form: str) -> None:
    kernel, start = forced(MODELS["sparse"], Gibbs(), form), start_of(MODELS["sparse"], 3)
    states = kernel.states(kernel.init(3, start))
    assert states.dtype == np.int8
    np.testing.assert_array_equal(states, start)


@pytest.mark.parametrize("chains", [1, CHAINS])
@pytest.mark.parametrize("method", [Gibbs(), Gibbs(log_z="chib"), Gibbs(log_z="none"), Gibbs(scan="random")])
def test_what_is_prepared_makes_no_step(method: Gibbs, chains: int) -> None:
    for model in MODELS.values():
        kernel, start = GibbsKernel(method, NumbaBackend(), model, method.plan(model)), start_of(model, chains)
        prepared, fresh = kernel.prepare(kernel.init(3, start)), kernel.init(3, start)
        assert (prepared.step, prepared.climbed) == (0, 0)
        for one, other in (
            (kernel.look(prepared), kernel.look(fresh)),
            (kernel.advance(prepared, 5)[1], kernel.advance(fresh, 5)[1]),
        ):
            assert one.keys() == other.keys()
            assert all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(("form", "log_z"), [("sites", "chib"), ("pattern_rows", "none")])
def test_long_blocks_give_the_same_chains(form: str, log_z: str) -> None:
    """Blocks of more rows than log T is summed of at once, and vectors of tables on a lattice."""
    model, method = grid(50, 51, 0), Gibbs(log_z=log_z)
    expected, actual = (run(model, method, name, chains=2) for name in ("lanes", form))
    for one, other in zip(expected, actual, strict=True):
        for key in method.reductions:
            assert other[key] == pytest.approx(one[key], rel=1e-9, abs=1e-9)


BITS = {"marginals": "empirical", "precision_bits": 16}
SMALL, WIDE, LARGE = generators.grid(8, 8), generators.grid(20, 20), generators.grid(300, 300)
LATTICE = generators.grid(32, 32)
LONG_ROWS, HUB = random_pairs(150, 1.0, 1.0, 0), of_edges(400, [(0, i) for i in range(1, 400)], 0)


@pytest.mark.parametrize(
    ("model", "chains", "settings", "form"),
    [
        (SMALL, 1, {}, "pattern_rows"),
        (WIDE, 1, {}, "pattern_rows"),
        (WIDE, 8, {}, "pattern_lanes"),
        (LARGE, 100, {}, "pattern_lanes"),
        (LARGE, 16, {}, "lanes"),
        (WIDE, 1, {"scan": "raster"}, "pattern_rows"),
        (LARGE, 1, {}, "sites"),
        (LATTICE, 1, {}, "sites"),
        (HUB, 1, {}, "sites"),
        (HUB, 16, {}, "lanes"),
        (MODELS["sparse"], 1, {"scan": "raster"}, "sites"),
        (WIDE, 1, {"log_z": "chib"}, "sites"),
        (WIDE, 16, {"log_z": "chib"}, "lanes"),
        (WIDE, 100, {"scan": "random"}, "single_updates"),
        (WIDE, 100, {"sample": "update"}, "single_updates"),
        (LONG_ROWS, 1, {}, "dense"),
        (LONG_ROWS, 100, {}, "dense"),
        (LONG_ROWS, 1, {"marginals": "empirical"}, "dense"),
        (WIDE, 1, BITS, "pattern_lanes"),
    ],
)
def test_the_form_follows_model_scan_and_chains(
    model: PairwiseModel, chains: int, settings: dict[str, Any], form: str
) -> None:
    method = Gibbs(**{"log_z": "none", **settings})
    assert GibbsKernel(method, NumbaBackend(), model, method.plan(model))._form(chains) is CLASSES[form]


def test_dense_fields_do_not_drift() -> None:
    """After many flips the fields that are kept still are those of the states."""
    model = random_pairs(60, 1.0, 1.0, 3)
    kernel = forced(model, Gibbs(log_z="none"), "dense", "float32")
    state, _ = kernel.advance(kernel.init(0, np.zeros((60, 2), dtype=np.int8)), 20_000)
    order = kernel._tables.order
    fields = model.biases[order] + state.s @ model.dense()[np.ix_(order, order)]
    # FLUSH sweeps of 60 flips, each rounded at the size of the fields
    assert abs(state.x[:, :60] - fields).max() < 64 * 60 * np.finfo(np.float32).eps * abs(fields).max() / 10


def test_rare_states_have_their_probabilities() -> None:
    """p = 3/4 of what the first 16 bits can tell, so that further bits decide: without them it would be 0 or 4/3 p."""
    p = np.array([0.75, 3.75]) / 2**16
    model = PairwiseModel.from_edges(np.log(p) - np.log1p(-p), np.zeros((0, 2), dtype=int), [])
    method = Gibbs(marginals="empirical", log_z="none")
    kernel = GibbsKernel(method, NumbaBackend(precision="float32"), model, tables := method.plan(model))
    counts = kernel.advance(kernel.init(3, np.zeros((2, 1024), dtype=np.int8)), 100_000)[1]["s"].sum(axis=1)
    expected = 1024 * 100_000 * p[tables.order]
    assert (abs(counts - expected) < 4 * np.sqrt(expected)).all()


@nb.njit
def _decide(thresholds, places, hashes, state, marks, parts):
    decide(address(thresholds, 0), 0, address(places, 0), address(hashes, 0), address(state, 0), marks, parts)


def test_where_the_first_bits_are_equal_the_others_decide() -> None:
    kind, lanes, parts, bits = np.uint16, 32, 4, 48
    hashes = np.random.default_rng(0).integers(0, 2**63, lanes // parts).astype(np.uint64)
    lane = np.arange(lanes)
    with np.errstate(over="ignore"):
        rest = mix(hashes[lane // parts] + GOLDEN_GAMMA * (lane % parts + 1).astype(np.uint64)) >> np.uint64(64 - bits)
    high = np.uint64(0xABC) << np.uint64(bits)
    thresholds = high | (rest + np.where(lane % 3 == 0, 1, 0).astype(np.uint64))  # U < threshold, or equal to it
    state = np.where(lane % 5 == 0, 7, 1).astype(kind)
    _decide(thresholds, lane.astype(kind), hashes, state, pattern_lanes.MARKS, pattern_lanes.PARTS)
    np.testing.assert_array_equal(state, np.where(lane % 5 == 0, 7, np.where(lane % 3 == 0, np.iinfo(kind).max, 0)))

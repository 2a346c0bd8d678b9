"""Gibbs sampling with tables of neighbours' patterns: the chains that plain NumPy makes of the same random bits."""

from __future__ import annotations

import numba as nb
import numpy as np
import pytest

from spinbench.backends.numba import NumbaBackend
from spinbench.backends.numba.gibbs import pattern_lanes
from spinbench.backends.numba.gibbs.kernel import GibbsKernel
from spinbench.backends.numba.gibbs.patterns import decide
from spinbench.backends.numba.simd.memory import address
from spinbench.backends.numba.simd.random import GOLDEN_GAMMA, chain_keys
from spinbench.inference import binding
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import PairwiseModel

SEED, CHAINS, BURN_IN, BATCHES = 9, 34, 1, (9, 5)


def mix(z):
    """SplitMix64's hash of an array of uint64."""
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def random_bits(keys, counter, part, width):
    """64 bits: part number `part` of a hash, `width` bits, then those of a hash of the hash."""
    with np.errstate(over="ignore"):
        word = mix(keys[0] + keys[1] * np.uint64(counter))
        rest = mix(word + GOLDEN_GAMMA * (part + 1).astype(np.uint64))
    high = (word >> (part * width).astype(np.uint64)) & np.uint64(2**width - 1)
    return (high << np.uint64(64 - width)) | (rest >> np.uint64(width))


def numbers_of_lanes(tables, n):
    """u(t, i): the bits of all chains."""
    streams = chain_keys(SEED, -(-CHAINS // 32) * 8)
    chain = np.arange(CHAINS)
    return lambda t, i: random_bits(streams[:, chain // 4], t * (n + 1) + i, chain % 4, 16)


def grid(rows, columns, seed):
    index = np.arange(rows * columns).reshape(rows, columns)
    pairs = [(index[:, :-1], index[:, 1:]), (index[:-1], index[1:])]
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])
    rng = np.random.default_rng(seed)
    return PairwiseModel.from_edges(rng.normal(size=rows * columns), edges, rng.normal(size=len(edges)))


def ring(n, reach):
    """Every variable is coupled to the `reach` next ones on a ring: 2 reach neighbours each, and many colours."""
    rng = np.random.default_rng(n + reach)
    edges = np.array([(i, (i + d) % n) for i in range(n) for d in range(1, reach + 1)])
    return PairwiseModel.from_edges(rng.normal(size=n), edges, 0.5 * rng.normal(size=len(edges)))


def tree(n, seed):
    """At most six neighbours, at all distances."""
    rng = np.random.default_rng(seed)
    degree, edges = np.zeros(n, dtype=int), []
    for i in range(1, n):
        j = int(rng.choice(np.flatnonzero(degree[:i] < 5)))
        degree[[i, j]] += 1
        edges.append((j, i))
    return PairwiseModel.from_edges(rng.normal(size=n), edges, rng.normal(size=n - 1))


MODELS = {
    "grid": grid(15, 18, 0),
    "ring": ring(21, 2),
    "six": ring(23, 3),
    "tree": tree(30, 1),
    "alone": PairwiseModel.from_edges([0.5, -60.0, 60.0], np.zeros((0, 2), dtype=int), []),
}
FORMS = {"pattern_lanes": numbers_of_lanes}


def made(model, method, form, precision="float64"):
    kernel = GibbsKernel(method, NumbaBackend(precision=precision), model, method.plan(model))
    kernel._form = lambda _: form
    return kernel


def start_of(model, chains=CHAINS):
    return np.random.default_rng(0).integers(0, 2, (model.num_variables, CHAINS)).astype(np.int8)[:, :chains]


def run(kernel, model, chains=CHAINS, batches=BATCHES):
    state = kernel.warm(kernel.init(SEED, start_of(model, chains)), BURN_IN)
    seen = []
    for steps in batches:
        state, statistics = kernel.advance(state, steps)
        seen.append(statistics)
    return seen


def plain(kernel, model, method, numbers):
    """The same by the definitions."""
    tables = kernel._tables
    a, W = model.biases[tables.order], model.dense()[np.ix_(tables.order, tables.order)]
    s = start_of(model)[tables.order].astype(float)
    seen, t = [], 0
    for steps in (BURN_IN, *BATCHES):
        p_sum, s_sum = np.zeros_like(s), np.zeros_like(s)
        for _ in range(steps):
            for i in range(len(a)):
                p = 1 / (1 + np.exp(-(a[i] + W[i] @ s)))
                threshold = np.array([min(int(x * 2.0**64), 2**64 - 1) for x in p], dtype=np.uint64)
                s[i] = numbers(t, i) < threshold
                p_sum[i] += p
            s_sum += s
            t += 1
        seen.append({"p": p_sum, "s": s_sum})
    return seen[1:]


@pytest.mark.parametrize("scan", ["chromatic", "raster"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", FORMS)
def test_chains_are_those_of_the_definitions(form, name, scan):
    model = MODELS[name]
    for marginals in ("rao_blackwell", "empirical"):
        method = Gibbs(scan=scan, marginals=marginals)
        kernel = made(model, method, form)
        found = run(kernel, model)
        numbers = FORMS[form](kernel._made.tables, model.num_variables)
        for one, other in zip(plain(kernel, model, method, numbers), found, strict=True):
            for key in method.reductions:
                assert other[key] == pytest.approx(one[key], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("scan", ["chromatic", "raster"])
@pytest.mark.parametrize("name", MODELS)
def test_rows_give_the_chains_of_fields(name, scan):
    """They use the same numbers."""
    model = MODELS[name]
    for marginals in ("rao_blackwell", "empirical"):
        method = Gibbs(scan=scan, marginals=marginals)
        rows, fields = (run(made(model, method, form), model) for form in ("pattern_rows", "lanes"))
        for one, other in zip(fields, rows, strict=True):
            for key in method.reductions:
                assert other[key] == pytest.approx(one[key], rel=1e-9, abs=1e-9)


def test_single_precision_rounds_sums_not_draws():
    model, method = MODELS["grid"], Gibbs()
    for form in (*FORMS, "pattern_rows"):
        single, double = (run(made(model, method, form, kind), model) for kind in ("float32", "float64"))
        for one, other in zip(single, double, strict=True):
            for key in method.reductions:
                assert one[key] == pytest.approx(other[key], abs=2e-5)


@pytest.mark.parametrize("form", [*FORMS, "pattern_rows"])
def test_a_chain_does_not_depend_on_the_chains_beside_it(form):
    model = MODELS["grid"]
    many, few = (run(made(model, Gibbs(), form), model, chains) for chains in (CHAINS, 3))
    for one, other in zip(many, few, strict=True):
        assert np.array_equal(one["p"][:, :3], other["p"])


@pytest.mark.parametrize("form", [*FORMS, "pattern_rows"])
def test_neither_threads_nor_batches_change_anything(form):
    model = MODELS["grid"]
    plainly = run(made(model, Gibbs(), form), model, batches=(600,))[0]
    shared = run(made(model, Gibbs(threads=3), form), model, batches=(600,))[0]
    parts = run(made(model, Gibbs(), form), model, batches=(1, 256, 343))
    for key in Gibbs().reductions:
        assert np.array_equal(plainly[key], shared[key])
    assert plainly["p"] == pytest.approx(sum(part["p"] for part in parts), rel=1e-12)


def test_rare_states_have_their_probabilities():
    """p = 3/4 of what the first 16 bits can tell, so that further bits decide: without them it would be 0 or 4/3 p."""
    p = np.array([0.75, 3.75]) / 2**16
    model = PairwiseModel.from_edges(np.log(p) - np.log1p(-p), np.zeros((0, 2), dtype=int), [])
    method = Gibbs(marginals="empirical", log_z="none")
    engine = binding.bind(method, "numba", model, tables := method.plan(model), precision="float32").engine
    chains, steps = 1024, 100_000
    state = engine.init(3, np.zeros((2, chains), dtype=np.int8))
    counts = engine.advance(state, steps)[1]["s"].sum(axis=1)
    draws = chains * steps
    assert (abs(counts - draws * p[tables.order]) < 4 * np.sqrt(draws * p[tables.order])).all()


@nb.njit
def _decide(thresholds, places, hashes, state, marks, parts):
    decide(address(thresholds, 0), 0, address(places, 0), address(hashes, 0), address(state, 0), marks, parts)


def test_where_the_first_bits_are_equal_the_others_decide():
    kind, lanes, parts, bits = np.uint16, 32, 4, 48
    hashes = np.random.default_rng(0).integers(0, 2**63, lanes // parts).astype(np.uint64)
    lane = np.arange(lanes)
    with np.errstate(over="ignore"):
        rest = mix(hashes[lane // parts] + GOLDEN_GAMMA * (lane % parts + 1).astype(np.uint64)) >> np.uint64(64 - bits)
    high = np.uint64(0xABC) << np.uint64(bits)
    thresholds = high | (rest + np.where(lane % 3 == 0, 1, 0).astype(np.uint64))  # U < threshold, or equal to it
    state = np.where(lane % 5 == 0, 7, 1).astype(kind)
    _decide(thresholds, lane.astype(kind), hashes, state, pattern_lanes.MARKS, pattern_lanes.PARTS)
    expected = np.where(lane % 5 == 0, 7, np.where(lane % 3 == 0, np.iinfo(kind).max, 0))
    assert np.array_equal(state, expected)

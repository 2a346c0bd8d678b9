"""The forms of the Numba kernel are the same sampler: equal numbers make equal chains."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.backends.numba import NumbaBackend
from spinbench.backends.numba.gibbs import sites
from spinbench.backends.numba.gibbs.kernel import GibbsKernel
from spinbench.backends.numba.simd.random import chain_keys
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import PairwiseModel

CHAINS = 20


def random_model(n, density, seed):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.normal(size=(n, n)), 1) * (rng.random((n, n)) < density)
    edges = np.argwhere(W)
    return PairwiseModel.from_edges(rng.normal(size=n), edges, W[edges[:, 0], edges[:, 1]])


def grid(rows, columns, seed):
    index = np.arange(rows * columns).reshape(rows, columns)
    pairs = [(index[:, :-1], index[:, 1:]), (index[:-1], index[1:])]
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])
    rng = np.random.default_rng(seed)
    return PairwiseModel.from_edges(rng.normal(size=rows * columns), edges, rng.normal(size=len(edges)))


MODELS = {
    "grid": grid(7, 8, 0),
    "sparse": random_model(40, 0.1, 1),  # three colours and degrees from 0 to 9
    "complete": random_model(12, 1.0, 2),
}


def run(model, method, form, precision, chains, batches=(70, 5, 61), seed=9):
    """(batch, N, C) statistics with the form forced."""
    kernel = GibbsKernel(method, NumbaBackend(precision=precision), model, method.plan(model))
    kernel._form = lambda _: form
    start = np.random.default_rng(0).integers(0, 2, (model.num_variables, CHAINS)).astype(np.int8)[:, :chains]
    state = kernel.warm(kernel.init(seed, start), 2)
    seen = []
    for steps in batches:
        state, statistics = kernel.advance(state, steps)
        seen.append(statistics)
    return seen


def mix(z):
    """SplitMix64's hash of an array of uint64."""
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def plain(model, method, chains, batches=(70, 5, 61), seed=9, warm=2):
    """The same by the definitions, in float64."""
    tables, n = method.plan(model), model.num_variables
    a, W = model.biases[tables.order], model.dense()[np.ix_(tables.order, tables.order)]
    start = np.random.default_rng(0).integers(0, 2, (n, CHAINS))[tables.order, :chains]
    (begin, step), s, seen, t = chain_keys(seed, chains), start.astype(float), [], 0
    for steps in (warm, *batches):
        sums, log_t = np.zeros_like(s), np.full(chains, -np.inf)
        for _ in range(steps):
            log_t = np.logaddexp(log_t, log_transition(tables.mode, a, W, s))
            for i in range(n):
                with np.errstate(over="ignore"):
                    u = (mix(begin + step * np.uint64(t * (n + 1) + i)) >> np.uint64(11)) * 2.0**-53
                p = 1 / (1 + np.exp(-(a[i] + W[i] @ s)))
                s[i] = u < p
                sums[i] += p if method.marginals == "rao_blackwell" else 0
            sums += s if method.marginals == "empirical" else 0
            t += 1
        seen.append({"p" if method.marginals == "rao_blackwell" else "s": sums, "log_t": log_t})
    return seen[1:]


def log_transition(mode, a, W, s):
    """log T(s* <- s) by its definition."""
    forced, level = s.copy(), np.zeros(s.shape[1])
    for i in range(len(a)):
        level -= np.logaddexp(0.0, (1 - 2 * mode[i]) * (a[i] + W[i] @ forced))
        forced[i] = mode[i]
    return level


@pytest.mark.parametrize(("precision", "atol"), [("float64", 1e-12), ("float32", 1e-4)])
@pytest.mark.parametrize("chains", [1, 9, 70])
@pytest.mark.parametrize(
    ("form", "scan"),
    [("dense", "chromatic"), ("sites", "chromatic"), ("sites", "raster"), ("pattern_rows", "chromatic")],
)
def test_looks_of_a_form_see_what_those_in_vectors_of_chains_do(form, scan, precision, atol, chains):
    method, start = Gibbs(scan=scan), np.random.default_rng(0)
    for model in MODELS.values():
        if form == "pattern_rows" and model.degrees.max() > 6:
            continue
        both = [GibbsKernel(method, NumbaBackend(precision=precision), model, method.plan(model)) for _ in range(2)]
        states = start.integers(0, 2, (model.num_variables, chains)).astype(np.int8)
        seen = []
        for kernel, name in zip(both, (form, "lanes"), strict=True):
            kernel._form = lambda _, name=name: name
            seen.append(kernel.look(kernel.prepare(kernel.init(3, states))))
        for name in ("log_t", "log_r"):
            np.testing.assert_allclose(seen[0][name], seen[1][name], rtol=0, atol=atol)


@pytest.mark.parametrize("scan", ["chromatic", "raster"])
@pytest.mark.parametrize("name", MODELS)
def test_looks_see_transition_probabilities(name, scan):
    """log T(s* <- s) by its definition."""
    model, method = MODELS[name], Gibbs(scan=scan)
    kernel = GibbsKernel(method, NumbaBackend(), model, method.plan(model))
    start = np.random.default_rng(0).integers(0, 2, (model.num_variables, 5)).astype(np.int8)
    tables = kernel._tables
    a, W = model.biases[tables.order], model.dense()[np.ix_(tables.order, tables.order)]
    level = log_transition(tables.mode, a, W, start[tables.order].astype(float))
    for form in ("lanes", "sites", "dense"):
        kernel._form = lambda _, form=form: form
        np.testing.assert_allclose(kernel.look(kernel.init(3, start))["log_t"], level, rtol=0, atol=1e-10)


def test_looks_of_a_sparse_model_go_without_its_rows():
    model, method = grid(20, 20, 0), Gibbs()
    kernel = GibbsKernel(method, NumbaBackend(), model, method.plan(model))
    kernel._form = lambda _: "sites"
    state = kernel.prepare(kernel.init(3, np.zeros((model.num_variables, 1), dtype=np.int8)))
    assert kernel.look(state).keys() == {"log_t", "log_r"}
    assert not {"rows", "flat"} & vars(kernel._source).keys()


@pytest.mark.parametrize("form", ["lanes", "sites", "dense", "single_updates"])
def test_states_are_handed_over_in_a_byte_each(form):
    model, method = MODELS["sparse"], Gibbs()
    kernel = GibbsKernel(method, NumbaBackend(), model, method.plan(model))
    kernel._form = lambda _: form
    start = np.random.default_rng(0).integers(0, 2, (model.num_variables, 3)).astype(np.int8)
    states = kernel.states(kernel.init(3, start))
    assert states.dtype == np.int8
    np.testing.assert_array_equal(states, start)


@pytest.mark.parametrize("chains", [1, CHAINS])
@pytest.mark.parametrize("method", [Gibbs(), Gibbs(log_z="chib"), Gibbs(log_z="none"), Gibbs(scan="random")])
def test_what_is_prepared_makes_no_step(method, chains):
    for model in MODELS.values():
        kernel = GibbsKernel(method, NumbaBackend(), model, method.plan(model))
        start = np.random.default_rng(0).integers(0, 2, (model.num_variables, chains)).astype(np.int8)
        prepared = kernel.prepare(kernel.init(3, start))
        assert (prepared.step, prepared.climbed) == (0, 0)
        looks, fresh = kernel.look(prepared), kernel.look(kernel.init(3, start))
        assert looks.keys() == fresh.keys()
        assert all(np.array_equal(looks[name], fresh[name]) for name in looks)
        seen, expected = (kernel.advance(state, 5)[1] for state in (prepared, kernel.init(3, start)))
        assert all(np.array_equal(seen[name], expected[name]) for name in expected)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("scan", ["chromatic", "raster"])
@pytest.mark.parametrize("form", ["lanes", "sites", "dense"])
def test_chains_are_those_of_the_definitions(name, scan, form):
    for marginals, log_z in (("rao_blackwell", "chib"), ("empirical", "auto")):
        method = Gibbs(scan=scan, marginals=marginals, log_z=log_z)
        fast = run(MODELS[name], method, form, "float64", CHAINS)
        for one, other in zip(plain(MODELS[name], method, CHAINS), fast, strict=True):
            for key in method.reductions:
                assert other[key] == pytest.approx(one[key], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("form", ["lanes", "sites", "dense"])
def test_a_chain_does_not_depend_on_the_chains_beside_it(form):
    method = Gibbs(marginals="empirical")
    for precision in ("float32", "float64"):
        many = run(MODELS["sparse"], method, form, precision, CHAINS)
        few = run(MODELS["sparse"], method, form, precision, 3)
        for one, other in zip(many, few, strict=True):
            assert np.array_equal(one["s"][:, :3], other["s"])


@pytest.mark.parametrize("form", ["lanes", "sites", "dense", "single_updates"])
def test_threads_change_nothing(form):
    scan = "random" if form == "single_updates" else "chromatic"
    one, three = Gibbs(scan=scan), Gibbs(scan=scan, threads=3)
    for plain, shared in zip(
        run(MODELS["sparse"], one, form, "float64", CHAINS),
        run(MODELS["sparse"], three, form, "float64", CHAINS),
        strict=True,
    ):
        for key in one.reductions:
            assert np.array_equal(plain[key], shared[key])


@pytest.mark.parametrize("sample", ["sweep", "update"])
def test_single_updates_do_not_depend_on_batches_or_chains_beside(sample):
    """Sums and T are those of the states after each step, however late they are added up."""
    model, steps = MODELS["sparse"], (1,) * 90
    for marginals in ("rao_blackwell", "empirical"):
        method = Gibbs(scan="random", sample=sample, marginals=marginals, log_z="chib")
        together = run(model, method, "single_updates", "float64", CHAINS, batches=(90,))[0]
        parts = run(model, method, "single_updates", "float64", 3, batches=steps)
        name = next(iter(method.reductions))
        np.testing.assert_allclose(sum(part[name] for part in parts), together[name][:, :3], rtol=1e-12, atol=1e-12)
        log_t = np.logaddexp.reduce([part["log_t"] for part in parts])
        np.testing.assert_allclose(log_t, together["log_t"][:3], rtol=1e-12)


def test_forms_agree_in_single_precision():
    """The same chains but for a number in 10^6 that falls between two roundings: the first sweeps are equal."""
    method = Gibbs(marginals="empirical", log_z="none")
    plain = run(MODELS["sparse"], method, "lanes", "float32", CHAINS, batches=(1, 1, 1))
    for form in ("sites", "dense"):
        other = run(MODELS["sparse"], method, form, "float32", CHAINS, batches=(1, 1, 1))
        for one, two in zip(plain, other, strict=True):
            assert np.array_equal(one["s"], two["s"])


def test_a_wave_of_sweeps_gives_the_same_chains(monkeypatch):
    """Sweeps that follow each other through chunks of rows, against whole sweeps one after the other."""
    monkeypatch.setattr(sites, "CHUNK", 64)
    monkeypatch.setattr(sites, "WAVE_SWEEPS", 3)
    model, method = grid(41, 43, 0), Gibbs()
    kernel = GibbsKernel(method, NumbaBackend(), model, method.plan(model))
    kernel._form = lambda _: "sites"
    kernel.init(0, np.zeros((model.num_variables, 1), dtype=np.int8))
    assert sites.wave_of(kernel._made.tables, whole=False)[:2] == (3, 64)
    rows = run(model, method, "lanes", "float64", 2)
    waves = run(model, method, "sites", "float64", 2)
    for one, other in zip(rows, waves, strict=True):
        for key in method.reductions:
            assert other[key] == pytest.approx(one[key], rel=1e-9, abs=1e-9)


def test_the_form_follows_model_scan_and_chains():
    def form(model, chains, **settings):
        method = Gibbs(**{"log_z": "none", **settings})
        return GibbsKernel(method, NumbaBackend(), model, method.plan(model))._form(chains)

    wide, long_rows, large = grid(20, 20, 0), random_model(150, 1.0, 0), grid(300, 300, 0)
    hub = PairwiseModel.from_edges(np.zeros(400), [(0, i) for i in range(1, 400)], np.ones(399))
    assert form(grid(8, 8, 0), 1) == "pattern_rows"
    assert form(wide, 1) == "sites"
    assert form(wide, 8) == form(large, 100) == "pattern_lanes"
    assert form(large, 16) == "lanes"
    assert form(wide, 1, scan="raster") == "pattern_rows"
    assert form(large, 1) == form(hub, 1) == "sites"
    assert form(hub, 16) == "lanes"
    assert form(MODELS["sparse"], 1, scan="raster") == "sites"
    assert (form(wide, 1, log_z="chib"), form(wide, 16, log_z="chib")) == ("sites", "lanes")
    assert form(wide, 100, scan="random") == form(wide, 100, sample="update") == "single_updates"
    assert form(long_rows, 1) == form(long_rows, 100) == form(long_rows, 1, marginals="empirical") == "dense"
    assert form(wide, 1, marginals="empirical", precision_bits=16) == "pattern_lanes"


def test_dense_fields_do_not_drift():
    """After many flips the fields that are kept still are those of the states."""
    model = random_model(60, 1.0, 3)
    method = Gibbs(log_z="none")
    kernel = GibbsKernel(method, NumbaBackend(precision="float32"), model, method.plan(model))
    kernel._form = lambda _: "dense"
    state = kernel.init(0, np.zeros((60, 2), dtype=np.int8))
    state, _ = kernel.advance(state, 20_000)
    order = kernel._tables.order
    fields = model.biases[order] + state.s @ model.dense()[np.ix_(order, order)]
    # FLUSH sweeps of 60 flips, each rounded at the size of the fields
    assert abs(state.x[:, :60] - fields).max() < 64 * 60 * np.finfo(np.float32).eps * abs(fields).max() / 10

"""Gibbs sampling on every backend, against enumeration: fixed seeds, tolerances in standard errors."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import stats

import spinbench
from spinbench.api.trace import Trace
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.inference import binding
from spinbench.inference.budget import Budget
from spinbench.inference.driver import drive
from spinbench.mathematics.graphs import rows, sweep_layouts
from spinbench.mathematics.graphs.sweep_layouts import Scan
from spinbench.methods.gibbs import gibbs
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import PairwiseModel

BACKENDS = ["numpy", "numba", "jax"]
PRECISIONS = ["float32", "float64"]


def random_model(n, density, scale, seed):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.normal(size=(n, n)) * scale, 1) * (rng.random((n, n)) < density)
    edges = np.argwhere(W)
    biases = scale * rng.normal(size=n)
    return PairwiseModel.from_edges(biases, edges, W[edges[:, 0], edges[:, 1]], log_constant=0.7)


def grid(rows, columns, seed=0):
    index = np.arange(rows * columns).reshape(rows, columns)
    pairs = [(index[:, :-1], index[:, 1:]), (index[:-1], index[1:])]
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])
    rng = np.random.default_rng(seed)
    return PairwiseModel.from_edges(rng.normal(size=rows * columns), edges, rng.normal(size=len(edges)))


def hub(n):
    """A star with a path through its leaves: one variable has many neighbours."""
    edges = [(0, i) for i in range(1, n)] + [(i, i + 1) for i in range(1, n - 1)]
    rng = np.random.default_rng(3)
    return PairwiseModel.from_edges(rng.normal(size=n), edges, rng.normal(size=len(edges)))


MODELS = {
    "dense": random_model(6, 1.0, 1.0, 0),
    "disconnected": random_model(9, 0.3, 1.0, 1),
    "one": random_model(1, 1.0, 1.0, 2),
    "zero": PairwiseModel.from_edges([0.3, -1.0, 0.0, 2.0], [[0, 1], [1, 2]], [0.0, 0.0]),
    "huge": random_model(5, 0.5, 300.0, 4),
    "many blocks": random_model(9, 1.0, 0.5, 7),
    "grid": grid(3, 3),
    "lists": random_model(9, 0.3, 1.0, 1),
    "lists with a hub": hub(11),
    "many blocks of lists": random_model(10, 0.9, 0.4, 8),
    "windows": grid(3, 4, 1),
}
"""Small models get dense tables, unless lists of neighbours or windows are asked for."""


@cache
def states_and_weights(name):
    """All states (2^N, N) with their probabilities, and log Z."""
    model = MODELS[name]
    states = (np.arange(2**model.num_variables)[:, None] >> np.arange(model.num_variables)) & 1
    log_weights = model.log_weight(states)
    log_z = np.logaddexp.reduce(log_weights)
    return states, np.exp(log_weights - log_z), float(log_z)


@cache
def engine(name, backend, precision, method):
    """(tables, engine); compiled once for all tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        if name.startswith("many blocks"):
            patch.setattr(sweep_layouts, "MAX_BLOCKS", 4)
        if "lists" in name or name == "windows":
            patch.setattr(rows, "DENSE_FACTOR", 0)
        if "lists" in name:
            patch.setattr(rows, "MAX_WINDOWS", 0)
        tables = method.plan(MODELS[name])
    return tables, binding.bind(method, backend, MODELS[name], tables, precision=precision).engine


def exact_draws(name, count, seed):
    """(N, count) int8."""
    states, p, _ = states_and_weights(name)
    return states[np.random.default_rng(seed).choice(len(p), size=count, p=p)].T.astype(np.int8)


def run(name, backend, precision, method, samples, *, chains=16, seed=1):
    tables, bound = engine(name, backend, precision, method)
    start = exact_draws(name, chains, seed)
    trace = Trace(method.reductions)
    budget = Budget(samples=samples, burn_in=20)
    return drive(
        bound, trace, lambda t: method.estimate(MODELS[name], tables, t), budget, start=start, seed=seed, checkpoints=1
    )


def estimate(*args, **options):
    return run(*args, **options).estimate


PLAIN = Gibbs()
SETTINGS = {
    "default": PLAIN,
    "empirical": Gibbs(marginals="empirical", log_z="none"),
    "raster": Gibbs(scan="raster", log_z="chib"),
    "random": Gibbs(scan="random", log_z="chib"),
    "raster update": Gibbs(scan="raster", sample="update", log_z="chib"),
    "random update": Gibbs(scan="random", sample="update", marginals="empirical", log_z="chib"),
}
# Compiling for a model of new shape costs JAX seconds.
JAX_CASES = {
    *((name, "default") for name in ("dense", "disconnected")),
    ("many blocks", "raster"),
    ("disconnected", "random"),
    ("many blocks", "raster update"),
    ("dense", "random update"),
    ("lists with a hub", "default"),
    ("windows", "default"),
    ("many blocks of lists", "random update"),
}
CASES = [
    (backend, name, setting)
    for backend in BACKENDS
    for name in MODELS
    for setting in SETTINGS
    if backend != "jax" or (name, setting) in JAX_CASES
]


def precisions(backend, name, setting):
    """Both where that is cheap."""
    if backend == "jax":
        return ["float32" if name == "dense" else "float64"]
    return PRECISIONS if setting in ("default", "raster") else ["float64"]


@pytest.mark.parametrize(("backend", "name", "setting"), CASES)
def test_marginals_and_log_z_agree_with_enumeration(backend, name, setting):
    method = SETTINGS[setting]
    for precision in precisions(backend, name, setting):
        samples = 256 if backend == "numpy" else 4000
        if method.sample == "update":
            samples *= MODELS[name].num_variables + 1
        states, p, log_z = states_and_weights(name)
        found = estimate(name, backend, precision, method, samples)
        rounding = 1e-5 if precision == "float32" else 1e-9
        unseen = 12 / (16 * samples) if method.marginals == "empirical" else 0.0  # p = e^-12 for this not to happen
        assert (abs(found.marginals - p @ states) <= 4 * found.marginals_se + rounding + unseen).all()
        assert (found.r_hat < 1.1).all()
        scale = 1 + abs(log_z)
        assert found.doubts == ()
        for value, error in found.log_z_estimates.values():
            assert abs(value - log_z) <= 4 * error + rounding * scale
        ran = {"none": [], "chib": ["chib_bar", "chib"]}
        assert list(found.log_z_estimates) == ran.get(method.log_z, ["chib_bar"])
        assert (found.log_z is None) == (method.log_z == "none")


STATIONARY = {
    "default": Gibbs(marginals="empirical", log_z="chib"),
    "raster": Gibbs(scan="raster", marginals="empirical", log_z="chib"),
    "random": Gibbs(scan="random", marginals="empirical", log_z="chib"),
    "update": Gibbs(scan="raster", sample="update", marginals="empirical", log_z="chib"),
    "random update": Gibbs(scan="random", sample="update", marginals="empirical", log_z="chib"),
}


STATIONARY_CASES = [("dense", setting) for setting in STATIONARY]


@pytest.mark.parametrize(
    ("backend", "name", "setting"),
    [(b, *case) for b in BACKENDS for case in STATIONARY_CASES if b != "jax" or case[1] in ("default", "random")],
)
def test_exact_draws_stay_exact(backend, name, setting):
    chains, method = 20_000, STATIONARY[setting]
    tables, bound = engine(name, backend, "float64" if method.sample == "update" else "float32", method)
    state = bound.init(3, exact_draws(name, chains, 8))
    for _ in range(3):
        state, seen = bound.advance(state, 1)
    s = np.empty_like(seen["s"])
    s[tables.order] = seen["s"]  # of one step: the states themselves
    p = states_and_weights(name)[1]
    counts = np.bincount((2 ** np.arange(len(s)) @ s).astype(int), minlength=len(p))
    assert counts[p == 0].sum() == 0
    rare = p * chains < 10
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(p[~rare], p[rare].sum()) * chains
    kept = expected > 0
    assert stats.chisquare(observed[kept], expected[kept]).pvalue > 1e-3
    # plain Chib: the mean of T(s* <- s) over exact draws of s is p(s*); and over those of R(. <- s*), that of 1 / T
    looked = bound.look(state)
    mode_p = np.exp(float(tables.mode_log_weight) - states_and_weights(name)[2])
    for weights in (np.exp(seen["log_t"]), np.exp(looked["log_t"])):
        assert abs(weights.mean() - mode_p) < 4 * weights.std() / np.sqrt(chains)
    weights = np.exp(-looked["log_r"])
    assert abs(weights.mean() * mode_p - 1) < 4 * weights.std() / np.sqrt(chains) * mode_p


def transition(model, tables, order, s):
    """log T(s* <- s) from the definition; s (N,) in the order of variables."""
    mode = np.empty(model.num_variables)
    mode[tables.order] = tables.mode
    s, total = s.astype(float), 0.0
    for i in order:
        options = np.repeat(s[None], 2, axis=0)
        options[:, i] = 0.0, 1.0
        s[i] = mode[i]
        total += model.log_weight(s) - np.logaddexp.reduce(model.log_weight(options))
    return total


@pytest.mark.parametrize(
    ("backend", "name", "setting"),
    [
        case
        for case in CASES
        if case[1] not in ("one", "zero", "huge", "dense", "grid") and case[2] in ("default", "raster", "random update")
    ],
)
def test_transition_probabilities_are_those_of_the_sweep(backend, name, setting):
    model, method = MODELS[name], SETTINGS[setting]
    precision = "float32" if backend == "jax" and name == "dense" else "float64"
    tables, bound = engine(name, backend, precision, method)
    start = exact_draws(name, 16, 5)
    seen = [bound.look(bound.init(0, start))]
    if method.weighs_steps:
        seen.append(bound.advance(bound.init(0, start), 1)[1])
    order = range(model.num_variables) if method.scan == "raster" else tables.order.tolist()
    expected = [transition(model, tables, order, s) for s in start.T]
    for values in seen:
        assert values["log_t"] == pytest.approx(expected, rel=1e-9 if precision == "float64" else 1e-4)


@pytest.mark.parametrize(("backend", "repeats"), [("numba", 200), ("numpy", 30), ("jax", 40)])
def test_standard_errors_are_calibrated(backend, repeats):
    """z-scores over repeats have variance 1, to 4 standard errors of a variance from so many repeats."""
    states, p, log_z = states_and_weights("disconnected")
    found = [estimate("disconnected", backend, "float64", PLAIN, 400, seed=seed) for seed in range(repeats)]
    z = np.array([(f.marginals - p @ states) / f.marginals_se for f in found])
    z = np.column_stack([z, [(f.log_z - log_z) / f.log_z_se for f in found]])
    tolerance = 4 * np.sqrt(2 / repeats)
    assert (z.var(axis=0) < 1 + tolerance).all()
    assert (z.var(axis=0) > 0.75**2 - tolerance).all()  # claims are a little wider than standard errors
    assert (abs(z.mean(axis=0)) < 4 / np.sqrt(repeats)).all()


BATCHED = [
    ("dense", "default"),
    ("disconnected", "empirical"),
    ("disconnected", "raster"),
    ("disconnected", "random"),
    ("many blocks", "raster"),
    ("many blocks", "raster update"),
    ("dense", "random update"),
]


@pytest.mark.parametrize(
    ("backend", "name", "setting"),
    [(b, *case) for b in BACKENDS for case in BATCHED if b != "jax" or case in JAX_CASES],
)
def test_results_depend_on_the_seed_and_not_on_the_batches(backend, name, setting):
    method = SETTINGS[setting]
    precision = "float32" if backend == "jax" and name == "dense" else "float64"
    _, bound = engine(name, backend, precision, method)
    start = exact_draws(name, 16, 5)

    def run(seed, batches):
        state = bound.warm(bound.init(seed, start), 3)
        trace = Trace(method.reductions)
        for steps in batches:
            state, seen = bound.advance(state, steps)
            trace.add(seen, steps)
        return {key: trace.total(key) for key in method.reductions}

    once, again, parts, other = run(4, [41]), run(4, [41]), run(4, [1, 7, 30, 3]), run(5, [41])
    for key in method.reductions:
        assert np.array_equal(once[key], again[key])
        assert parts[key] == pytest.approx(once[key], rel=1e-9 if precision == "float64" else 1e-5)
    assert any(not np.array_equal(once[key], other[key]) for key in method.reductions)


def test_rao_blackwell_marginals_have_smaller_errors():
    plain = estimate("disconnected", "numba", "float64", PLAIN, 2000)
    empirical = estimate("disconnected", "numba", "float64", Gibbs(marginals="empirical"), 2000)
    assert (plain.marginals_se < empirical.marginals_se).all()
    assert (plain.ess > empirical.ess).all()


def test_a_sample_of_one_update_says_less_than_a_sweep():
    errors = {}
    for sample in ("sweep", "update"):
        method = Gibbs(scan="random", sample=sample, marginals="empirical", log_z="none")
        errors[sample] = estimate("disconnected", "numba", "float64", method, 9000).marginals_se
    # nine updates a sweep, and one update of the same chain is worth less than a ninth of a sweep
    assert (errors["update"] > 2 * errors["sweep"]).all()


def test_tables_have_all_forms():
    for model, scan in ((random_model(17, 1.0, 0.3, 7), True), (MODELS["grid"], False)):
        assert isinstance(PLAIN.plan(model).sweep, Scan) == scan
    assert isinstance(engine("many blocks", "numpy", "float64", PLAIN)[0].sweep, Scan)
    assert engine("many blocks of lists", "numpy", "float64", PLAIN)[0].sweep.columns is not None
    assert engine("lists with a hub", "numpy", "float64", PLAIN)[0].sweep.first[0].neighbours is not None
    assert engine("windows", "numpy", "float64", PLAIN)[0].sweep.first[0].windows is not None


@pytest.mark.parametrize(
    "settings",
    [
        {"scan": "spiral"},
        {"sample": "site"},
        {"marginals": "both"},
        {"log_z": "exact"},
        {"threads": 0},
    ],
)
def test_bad_settings_are_refused_in_a_sentence(settings):
    with pytest.raises(SpinbenchError, match=f"gibbs: {next(iter(settings))}="):
        Gibbs(**settings)


def test_too_many_units_for_a_random_scan_are_refused(monkeypatch):
    monkeypatch.setattr(gibbs, "MAX_RANDOM_VARIABLES", 8)
    with pytest.raises(UnsupportedError, match=r"9 variables.*scan=chromatic"):
        Gibbs(scan="random").plan(MODELS["grid"])


def test_fewer_updates_than_eight_sweeps_are_too_short() -> None:
    """What was never updated is where it began, in all chains alike."""
    model = grid(3, 4)
    for updates, short in ((8, True), (95, True), (4000, False)):
        found = spinbench.run(model, "gibbs", "numpy", updates, chains=64, sample="update", log_z="none", seed=1)
        assert ("marginals too short" in found.status) is short, found.status

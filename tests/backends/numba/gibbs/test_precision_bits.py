"""Gibbs sampling with rounded probabilities: the law of the chain, its bias, and its streams."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from spinbench.backends.numba import NumbaBackend
from spinbench.backends.numba.gibbs.kernel import GibbsKernel
from spinbench.backends.numba.gibbs.patterns import make_words
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.inference import binding
from spinbench.mathematics.statistics import standard_error
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import PairwiseModel


def ring(n, reach, scale):
    """Every variable is coupled to the `reach` next ones on a ring: 2 reach neighbours each."""
    rng = np.random.default_rng(n + reach)
    edges = np.array([(i, (i + d) % n) for i in range(n) for d in range(1, reach + 1)])
    return PairwiseModel.from_edges(rng.normal(size=n), edges, scale * rng.normal(size=len(edges)))


def path(n):
    rng = np.random.default_rng(n)
    return PairwiseModel.from_edges(rng.normal(size=n), [(i, i + 1) for i in range(1, n - 1)], rng.normal(size=n - 2))


MODELS = {"six": ring(8, 3, 0.3), "four": ring(7, 2, 0.5), "star": None, "path": path(6)}
MODELS["star"] = PairwiseModel.from_edges(
    [0.3, -0.2, 0.5, 1.0, -1.0, 0.1], [(0, i) for i in range(1, 6)] + [(1, 2)], [0.5, -0.4, 0.3, 0.6, -0.5, 0.7]
)


def settings(bits, scan="chromatic"):
    return Gibbs(marginals="empirical", log_z="none", precision_bits=bits, scan=scan)


def states_of(model):
    n = model.num_variables
    return (np.arange(2**n)[:, None] >> np.arange(n)) & 1


def exact_law(model):
    log_weights = model.log_weight(states_of(model))
    return np.exp(log_weights - np.logaddexp.reduce(log_weights))


def rounded_law(model, order, bits):
    """The stationary law of sweeps in `order` whose probabilities are rounded to multiples of 2^-bits."""
    states, W = states_of(model), model.dense()
    sweep = np.eye(len(states))
    for i in order:
        p = 1 / (1 + np.exp(-(model.biases[i] + states @ W[i])))
        p = np.minimum(np.rint(p * 2**bits), 2**bits - 1) / 2**bits
        low, high = np.arange(len(states)) & ~(1 << i), np.arange(len(states)) | 1 << i
        step = np.zeros_like(sweep)
        step[np.arange(len(states)), low] += 1 - p
        step[np.arange(len(states)), high] += p
        sweep = sweep @ step
    law = np.full(len(states), 1 / len(states))
    for _ in range(200):
        law = law @ sweep
    return law


def batches(model, method, chains, steps, count, seed=3):
    """(count, N, C) means over batches of `steps`, in the order of variables, and the plan's order."""
    tables = method.plan(model)
    engine = binding.bind(method, "numba", model, tables, precision="float32").engine
    start = np.random.default_rng(0).integers(0, 2, (model.num_variables, chains)).astype(np.int8)
    state = engine.warm(engine.init(seed, start), 50)
    means = np.empty((count, *start.shape))
    for k in range(count):
        state, seen = engine.advance(state, steps)
        means[k, tables.order] = seen["s"] / steps
    return means, tables.order


@pytest.mark.parametrize("scan", ["chromatic", "raster"])
@pytest.mark.parametrize("name", MODELS)
def test_marginals_are_those_of_the_rounded_chain(name, scan):
    model, states = MODELS[name], states_of(MODELS[name])
    means, order = batches(model, settings(8, scan), 500, 80, 50)
    found, error = means.mean(axis=(0, 2)), standard_error(means)
    rounded = rounded_law(model, order, 8) @ states
    assert (abs(found - rounded) < 4 * error).all()
    influence = abs(model.dense()).sum(axis=1).max() / 4  # Dobrushin: σ is 1/4-Lipschitz
    assert influence < 1
    assert abs(rounded - exact_law(model) @ states).max() < 2.0**-8 / (1 - influence)


def test_eight_bits_are_told_from_exact_probabilities():
    """The test above can fail: at this length it sees errors of 2^-9 in probabilities."""
    model = PairwiseModel.from_edges([np.log(0.0137 / (1 - 0.0137)), 0.0], [(0, 1)], [0.0])
    means, _ = batches(model, settings(8), 2000, 200, 50)
    error = standard_error(means)[0]
    assert abs(means[:, 0].mean() - 4 / 256) < 4 * error
    assert abs(means[:, 0].mean() - 0.0137) > 8 * error


@pytest.mark.parametrize("bits", [16, 24, 32])
def test_exact_draws_stay_exact(bits):
    model, method, chains = MODELS["four"], settings(bits), 20_000
    law, tables = exact_law(model), method.plan(model)
    engine = binding.bind(method, "numba", model, tables, precision="float64").engine
    drawn = np.random.default_rng(8).choice(len(law), size=chains, p=law)
    state = engine.init(3, states_of(model)[drawn].T.astype(np.int8))
    for _ in range(3):
        state, seen = engine.advance(state, 1)
    s = np.empty_like(seen["s"])
    s[tables.order] = seen["s"]
    counts = np.bincount((2 ** np.arange(len(s)) @ s).astype(int), minlength=len(law))
    rare = law * chains < 10
    observed, expected = np.append(counts[~rare], counts[rare].sum()), np.append(law[~rare], law[rare].sum()) * chains
    kept = expected > 0
    assert stats.chisquare(observed[kept], expected[kept]).pvalue > 1e-3


def test_results_do_not_depend_on_the_batches():
    once, _ = batches(MODELS["star"], settings(16), 100, 150, 1)
    parts, _ = batches(MODELS["star"], settings(16), 100, 30, 5)
    assert np.allclose(once[0], parts.mean(axis=0), rtol=0, atol=1e-12)


def test_threads_change_nothing():
    model, many = MODELS["four"], Gibbs(marginals="empirical", log_z="none", precision_bits=16, threads=2)
    shared, plain = (batches(model, method, 1000, 20, 2)[0] for method in (many, settings(16)))
    assert np.array_equal(shared, plain)


def test_chains_of_one_block_are_independent():
    means, _ = batches(MODELS["path"], settings(16), 64, 20, 400)
    centred = means[:, 0] - means[:, 0].mean()
    correlation = np.corrcoef(centred.T)[np.triu_indices(64, 1)]
    assert abs(correlation).max() < stats.norm.isf(1e-4 / len(correlation)) / np.sqrt(400)


def test_what_bits_do_not_take_is_refused():
    for wrong in ({"marginals": "rao_blackwell"}, {"log_z": "chib"}, {"sample": "update"}, {"scan": "random"}):
        given = {"marginals": "empirical", "log_z": "none", "precision_bits": 16} | wrong
        with pytest.raises(SpinbenchError, match=f"precision_bits=16 was given with {next(iter(wrong))}"):
            Gibbs(**given)
    for bits in (7, 33, True, 16.0):
        with pytest.raises(SpinbenchError, match="0 or 8 to 32 are allowed"):
            Gibbs(marginals="empirical", log_z="none", precision_bits=bits)
    grouped = PairwiseModel.from_edges([0.0, 1.0], np.zeros((0, 2), dtype=int), [], groups=[(0, 1)])
    with pytest.raises(UnsupportedError, match="groups"):
        settings(16).plan(grouped)
    star = PairwiseModel.from_edges(np.zeros(8), [(0, i) for i in range(1, 8)], np.ones(7))
    with pytest.raises(UnsupportedError, match="7 neighbours"):
        settings(16).plan(star)
    model = MODELS["path"]
    with pytest.raises(UnsupportedError, match="backend=numba"):
        binding.bind(settings(16), "numpy", model, settings(16).plan(model), precision="float64")


def test_probabilities_are_rounded_as_documented():
    model = PairwiseModel.from_edges([-50.0, 0.0, 50.0, 0.7], [(2, 3)], [-0.2])
    method = settings(12)
    kernel = GibbsKernel(method, NumbaBackend(), model, method.plan(model))
    tables = make_words(kernel._source.exact(), kernel._source.real, 12)
    rows = tables.thresholds.reshape(4, -1)  # by patterns of neighbours, the first of which is that all are 0
    assert (rows % np.uint64(2**52) == 0).all()
    where = np.argsort(kernel._tables.order)
    level = [int(rows[where[i], 0] >> np.uint64(52)) for i in range(4)]
    assert level[0] == 0
    assert level[1] == 2**11
    assert level[2] == 2**12 - 1
    assert abs(level[3] / 2**12 - 1 / (1 + np.exp(-0.7))) <= 2.0**-13

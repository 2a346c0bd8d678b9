"""The counter-based generator of the JAX backend. Fixed seeds; every threshold is a quantile of the exact law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from spinbench.backends.jax import JaxBackend

COUNT = 1 << 20
# Probability with which a test of a perfect generator would fail, at most, were its seed not fixed.
TAIL = 1e-4


@pytest.fixture(scope="module", params=["float32", "float64"])
def backend(request):
    return JaxBackend(precision=request.param)


@pytest.fixture(scope="module")
def draw(backend):
    """(kind, path of folds, shape) -> NumPy array."""

    def numbers(kind, path, shape, seed=5):
        def run(key):
            for index in path:
                key = backend.fold_in(key, index)
            return getattr(backend, kind)(key, shape)

        return np.asarray(backend.compile(run)(backend.key(seed)))

    return numbers


@pytest.fixture(scope="module")
def uniforms(draw):
    return draw("uniform", (3,), (COUNT,))


@pytest.fixture(scope="module")
def keys(backend):
    """(65536, 2) words of the keys folded with 0, 1, …"""
    import jax

    fold = backend.compile(jax.vmap(lambda key, index: backend.fold_in(key, index), in_axes=(None, 0)))
    return np.asarray(fold(backend.key(1), np.arange(1 << 16, dtype=np.int32)))


def test_uniforms_have_the_right_law_and_type(uniforms, backend):
    assert uniforms.dtype == backend.real
    assert uniforms.min() >= 0
    assert uniforms.max() < 1
    assert stats.kstest(uniforms.astype(np.float64), "uniform").pvalue > TAIL
    counts = np.bincount((uniforms * 4096).astype(int), minlength=4096)
    assert stats.chisquare(counts).pvalue > TAIL
    assert stats.chisquare(counts).pvalue < 1 - TAIL


def test_uniforms_use_all_their_bits(uniforms, backend):
    bits = 24 if backend.precision == "float32" else 53
    last = (uniforms.astype(np.float64) * 2.0**bits).astype(np.int64)
    assert np.array_equal(last / 2.0**bits, uniforms)
    for bit in range(bits):
        ones = int((last >> bit & 1).sum())
        assert abs(ones - COUNT / 2) < stats.norm.isf(TAIL / bits) * np.sqrt(COUNT) / 2


@pytest.mark.parametrize("lag", [1, 2, 3, 16, 100, 1024, 65536])
def test_no_serial_correlation(uniforms, lag):
    x = uniforms.astype(np.float64) - 0.5
    correlation = (x[lag:] * x[:-lag]).mean() * 12
    assert abs(correlation) < stats.norm.isf(TAIL / 14) / np.sqrt(COUNT - lag)


def test_pairs_and_triples_fill_the_square_and_the_cube(uniforms):
    for size, cells in ((2, 64), (3, 16)):
        x = (uniforms[: COUNT // size * size].reshape(-1, size) * cells).astype(int)
        counts = np.bincount(x @ cells ** np.arange(size), minlength=cells**size)
        assert TAIL < stats.chisquare(counts).pvalue < 1 - TAIL


def test_streams_of_folded_keys_are_not_correlated(draw, backend):
    import jax

    streams = backend.compile(
        jax.vmap(lambda key, index: backend.uniform(backend.fold_in(key, index), (4096,)), in_axes=(None, 0))
    )(backend.key(0), np.arange(256, dtype=np.int32))
    x = (np.asarray(streams, dtype=np.float64) - 0.5) * np.sqrt(12)
    correlations = (x @ x.T / 4096)[np.triu_indices(256, 1)]
    assert stats.kstest(correlations * np.sqrt(4096), "norm").pvalue > TAIL
    assert abs(correlations).max() < stats.norm.isf(TAIL / len(correlations)) / np.sqrt(4096)
    # the same place in every stream, as the steps of one chain and site use them
    across = x.T[:, :-1] * x.T[:, 1:]
    assert abs(across.mean()) < stats.norm.isf(TAIL / 2) / np.sqrt(across.size)
    counts = np.bincount(((x.T / np.sqrt(12) + 0.5) * 256).astype(int).ravel(), minlength=256)
    assert stats.chisquare(counts).pvalue > TAIL


def test_folded_keys_do_not_repeat_and_look_random(keys):
    words = keys[:, 0].astype(np.uint64) << np.uint64(32) | keys[:, 1].astype(np.uint64)
    assert len(np.unique(words)) == len(words)
    changes = np.bitwise_count(words[1:] ^ words[:-1]).astype(float)  # of 64 bits half, with variance 16
    assert abs(changes.mean() - 32) < stats.norm.isf(TAIL / 2) * 4 / np.sqrt(len(changes))
    assert abs(changes.var() / 16 - 1) < stats.norm.isf(TAIL / 2) * np.sqrt(2 / len(changes)) * 1.01


def test_folds_at_two_depths_give_different_keys(backend):
    def path(*indices):
        key = backend.key(2)
        for index in indices:
            key = backend.fold_in(key, index)
        return tuple(np.asarray(key).tolist())

    paths = [path(), path(0), path(1), path(0, 0), path(0, 1), path(1, 0), path(1, 1), path(0, 0, 0), path(2**31 - 1)]
    assert len(set(paths)) == len(paths)


def test_seeds_of_any_size_differ(backend):
    keys = {tuple(np.asarray(backend.key(seed)).tolist()) for seed in (0, 1, 2**31, 2**32, 2**32 + 1, 2**64, 2**64 + 1)}
    assert len(keys) == 7


def test_normals_have_the_right_law(draw, backend):
    x = draw("normal", (4,), (COUNT,))
    assert x.dtype == backend.real
    x = x.astype(np.float64)
    assert np.isfinite(x).all()
    assert stats.kstest(x, "norm").pvalue > TAIL
    for power, moment, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((x**power).mean() - moment) < stats.norm.isf(TAIL / 8) * np.sqrt(spread / COUNT)
    tails = (abs(x) > 4).sum()  # Poisson with mean 66
    assert stats.poisson.ppf(TAIL / 2, COUNT * 2 * stats.norm.sf(4)) <= tails
    assert tails <= stats.poisson.isf(TAIL / 2, COUNT * 2 * stats.norm.sf(4))
    correlation = (x[1:] * x[:-1]).mean()
    assert abs(correlation) < stats.norm.isf(TAIL / 2) / np.sqrt(COUNT)


def test_shapes_and_places(draw):
    flat = draw("uniform", (1,), (24,))
    assert np.array_equal(draw("uniform", (1,), (2, 3, 4)).ravel(), flat)
    assert draw("normal", (1,), (3, 5)).shape == (3, 5)
    assert np.array_equal(draw("uniform", (1,), (12,)), flat[:12])


def test_same_seed_same_numbers(draw):
    assert np.array_equal(draw("normal", (7,), (100,)), draw("normal", (7,), (100,)))
    assert not np.array_equal(draw("normal", (7,), (100,)), draw("normal", (7,), (100,), seed=6))

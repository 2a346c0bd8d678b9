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


def test_uniforms_use_all_their_bits(uniforms, backend):
    bits = 24 if backend.precision == "float32" else 53
    last = (uniforms.astype(np.float64) * 2.0**bits).astype(np.int64)
    assert np.array_equal(last / 2.0**bits, uniforms)
    for bit in range(bits):
        ones = int((last >> bit & 1).sum())
        assert abs(ones - COUNT / 2) < stats.norm.isf(TAIL / bits) * np.sqrt(COUNT) / 2


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


def test_folds_at_two_depths_give_different_keys(backend):
    def path(*indices):
        key = backend.key(2)
        for index in indices:
            key = backend.fold_in(key, index)
        return tuple(np.asarray(key).tolist())

    paths = [path(), path(0), path(1), path(0, 0), path(0, 1), path(1, 0), path(1, 1), path(0, 0, 0), path(2**31 - 1)]
    assert len(set(paths)) == len(paths)

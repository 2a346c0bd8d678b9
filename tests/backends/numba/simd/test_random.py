"""The kernels' random numbers: against the published algorithm, their distributions, and their independence."""

from __future__ import annotations

import numba as nb
import numpy as np
import pytest
from compiled_parts import called
from scipy import stats

from spinbench.backends.numba.simd import random as rng
from spinbench.backends.numba.simd.random_fills import fill_normal, fill_uniform

ZERO = np.uint64(0)
KINDS = ["float32", "float64"]
FILLS = {"uniform": called(fill_uniform), "normal": called(fill_normal)}


def draw(name: str, kind: str, shape: tuple[int, int], seed: int = 1, counter: int = 0) -> np.ndarray:
    out = np.empty(shape, dtype=kind)
    FILLS[name](rng.chain_keys(seed, shape[1]), np.uint64(counter), out)
    return out


@nb.njit
def fill_words(keys: np.ndarray, out: np.ndarray) -> None:
    for i, c in np.ndindex(out.shape):
        out[i, c] = rng.hash64(keys[0, c], keys[1, c], np.uint64(i))


def bits(shape: tuple[int, int], seed: int = 1) -> np.ndarray:
    """Halves of the hashes, the high ones before the low ones."""
    words = np.empty((shape[0] // 2, shape[1]), dtype=np.uint64)
    fill_words(rng.chain_keys(seed, shape[1]), words)
    return np.concatenate([words >> np.uint64(32), words & np.uint64(2**32 - 1)]).astype(np.uint32)


def test_numbers_are_those_of_splitmix64() -> None:
    """From seed 1234567 with the golden gamma, as printed by the reference implementation (Vigna, splitmix64.c)."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    start, gamma = np.uint64(1234567), rng.GOLDEN_GAMMA
    assert [int(called(rng.hash64)(start, gamma, np.uint64(k))) for k in range(1, 5)] == published


def test_keys_do_not_repeat_and_gammas_are_odd_and_mixed() -> None:
    starts, gammas = rng.chain_keys(0, 100_000)
    assert len(np.unique(starts)) == len(np.unique(gammas)) == 100_000
    assert (gammas % np.uint64(2) == 1).all()
    assert np.bitwise_count(gammas ^ (gammas >> np.uint64(1))).min() >= 24


def test_keys_depend_on_seed_and_chain_alone() -> None:
    np.testing.assert_array_equal(rng.chain_keys(5, 3), rng.chain_keys(5, 40)[:, :3])
    assert not np.isin(rng.chain_keys(6, 40), rng.chain_keys(5, 40)).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("n", [1, 2, 7, 64])
def test_a_chain_draws_the_same_whatever_runs_beside_it(name: str, kind: str, n: int) -> None:
    many = draw(name, kind, (n, 32))
    few = draw(name, kind, (n, 16))
    one = np.empty(n, dtype=kind)
    after = FILLS[name](rng.chain_keys(1, 4)[:, 3].copy(), ZERO, one)
    np.testing.assert_array_equal(many[:, :16], few)
    np.testing.assert_allclose(one, many[:, 3], rtol=4 * np.finfo(kind).eps)
    assert after == FILLS[name](rng.chain_keys(1, 32), ZERO, many)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FILLS)
def test_the_next_counter_starts_fresh_numbers(name: str, kind: str) -> None:
    first = np.empty((7, 16), dtype=kind)
    counter = FILLS[name](rng.chain_keys(1, 16), ZERO, first)
    second = draw(name, kind, (7, 16), counter=counter)
    assert len(np.unique(np.stack([first, second]))) == 2 * first.size


def test_bits_are_balanced_and_independent_of_each_other() -> None:
    words = bits((4000, 32))
    ones = (words.ravel()[:, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
    count = len(ones)
    centred = 2.0 * ones - 1
    # each mean, and each correlation of two bits, is normal with standard deviation count^-½; 528 of them
    products = centred.T @ centred / count
    worst = max(np.abs(centred.mean(axis=0)).max(), np.abs(products[np.triu_indices(32, 1)]).max())
    assert worst < 5 / np.sqrt(count)


def test_bits_of_neighbouring_counters_and_chains_are_independent() -> None:
    words = bits((2000, 50))
    for other in (np.roll(words, 1, axis=0), np.roll(words, 1, axis=1), np.roll(words, 1000, axis=0)):
        differing = np.bitwise_count(words ^ other).sum(dtype=np.int64)
        assert abs(differing - 16 * words.size) < 5 * np.sqrt(8 * words.size)


def test_words_repeat_as_often_as_birthdays_do() -> None:
    """Pairs of equal 32-bit words among m: Poisson with mean m(m - 1)/2^33."""
    words = bits((10_000, 40))
    repeats = words.size - len(np.unique(words))
    mean = words.size * (words.size - 1) / 2**33
    assert stats.poisson.sf(repeats - 1, mean) > 1e-4
    assert stats.poisson.cdf(repeats, mean) > 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_uniform_numbers(kind: str) -> None:
    u = draw("uniform", kind, (4000, 64)).astype(np.float64)
    assert u.min() >= 0
    assert u.max() < 1
    grid = 2.0 ** (24 if kind == "float32" else 53)
    np.testing.assert_array_equal(u * grid, np.floor(u * grid))
    assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-3
    for lagged in (u[1:], np.roll(u, 1, axis=1)[1:], np.roll(u, 2000, axis=0)[1:]):
        assert abs(np.corrcoef(u[:-1].ravel(), lagged.ravel())[0, 1]) < 5 / np.sqrt(lagged.size)
    # pairs fill the square
    cells = np.bincount((np.floor(u[:-1] * 16) * 16 + np.floor(u[1:] * 16)).astype(int).ravel(), minlength=256)
    assert stats.chisquare(cells).pvalue > 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(5001, 16), (601, 48)])
def test_normal_numbers(kind: str, shape: tuple[int, int]) -> None:
    z = np.concatenate([draw("normal", kind, shape, seed=s) for s in range(12)]).astype(np.float64)
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-3
    for order, (mean, variance) in {1: (0, 1), 2: (1, 2), 3: (0, 15), 4: (3, 96)}.items():
        assert abs((z**order).mean() - mean) < 4.5 * np.sqrt(variance / z.size), order
    half = (shape[0] + 1) // 2
    for shift in (1, half):
        pair = np.corrcoef(z[:-shift].ravel(), z[shift:].ravel())[0, 1]
        squares = np.corrcoef(z[:-shift].ravel() ** 2, z[shift:].ravel() ** 2)[0, 1]
        assert max(abs(pair), abs(squares)) < 5 / np.sqrt(z[shift:].size)


def test_float32_normal_tails_reach_far_enough() -> None:
    """P(|z| > 4.5) = 6.8e-6; the largest radius is 6.7."""
    z = draw("normal", "float32", (40_000, 96))
    beyond = int((np.abs(z) > 4.5).sum())
    mean = 2 * stats.norm.sf(4.5) * z.size
    assert abs(beyond - mean) < 4.5 * np.sqrt(mean)


def test_scalars() -> None:
    start, gamma = rng.chain_keys(3, 1)[:, 0]
    counters = np.arange(6000, dtype=np.uint64)
    uniform, below_six = called(rng.uniform), called(rng.below)
    u = np.array([uniform(start, gamma, c) for c in counters])
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    below = np.array([below_six(start, gamma, c, 6) for c in counters])
    assert below.dtype == np.int64
    assert stats.chisquare(np.bincount(below, minlength=6)).pvalue > 1e-3

"""Gaussians that are fitted to draws of the relaxed density, and how other draws compare with them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spinbench.mathematics.relaxation.density import FloatArray, Relaxation

Rows = tuple[slice, slice, slice]


class Draws:
    """Draws of one half: z (N, n), log p*(z) (n,) without its constants, p(s = 1|x) (N, n)."""

    def __init__(self, relaxation: Relaxation, alpha: FloatArray) -> None:
        self._batches, n, self._chains = alpha.shape
        field = np.ascontiguousarray(alpha.transpose(1, 0, 2)).reshape(n, -1)
        self.z = _inverse(relaxation.cholesky) @ field
        means, log_normaliser = relaxation.conditional(field.T + relaxation.bias)
        self.means = means.T
        self.log_target = log_normaliser - 0.5 * np.einsum("ij,ij->j", self.z, self.z)

    def series(self, values: FloatArray) -> FloatArray:
        """(n,) to (B, C)."""
        return values.reshape(self._batches, self._chains)


@dataclass(frozen=True)
class Gaussian:
    """N(mean, root rootᵀ), root lower triangular; densities without (2π)^(-N/2), which cancels."""

    mean: FloatArray
    root: FloatArray

    @classmethod
    def conditional(cls, relaxation: Relaxation, draws: Draws) -> Gaussian:
        """From the moments of z given s and those of s given x."""
        n, p = len(draws.means), draws.means
        mean = p.mean(axis=1)
        covariance = _covariance(p, mean)
        within = np.diag((p * (1 - p)).mean(axis=1))
        for group in relaxation.model.groups:
            block = np.ix_(group, group)
            within[block] = np.diag(mean[list(group)]) - p[list(group)] @ p[list(group)].T / p.shape[1]
        L = relaxation.cholesky
        # I + Lᵀ Cov(s) L is positive definite for any number of draws; the covariance of the draws themselves would
        # need more than N.
        return cls(L.T @ mean, _cholesky(np.eye(n) + L.T @ (covariance + within) @ L))

    @classmethod
    def fit(cls, z: FloatArray) -> Gaussian:
        """From the mean and covariance of the draws."""
        mean = z.mean(axis=1)
        return cls(mean, _cholesky(_covariance(z, mean)))

    def log_density(self, z: FloatArray) -> FloatArray:
        """(n,) for z (N, n)."""
        y = _inverse(self.root) @ (z - self.mean[:, None])
        return np.asarray(-0.5 * np.einsum("ij,ij->j", y, y) - np.log(np.diag(self.root)).sum())


@dataclass(frozen=True)
class CrossFit:
    """A q from each half of some draws, with which draws of the other half's chains are compared."""

    relaxation: Relaxation
    first: Gaussian
    second: Gaussian

    @classmethod
    def fit(cls, relaxation: Relaxation, alpha: FloatArray) -> CrossFit:
        """From draws (B, N, C) of α, C > 1."""
        halves = [Draws(relaxation, alpha[rows]) for rows in halves_of(*alpha.shape)]
        return cls(relaxation, *(Gaussian.conditional(relaxation, half) for half in halves))

    def compare(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log p*(z) - log q(z), (B, C), of draws (B, N, C) of α of the same chains, and of as many draws of q."""
        halves = [Draws(self.relaxation, alpha[rows]) for rows in halves_of(*alpha.shape)]
        forward, backward = self.compare_halves(halves)
        shaped = [back.reshape(ahead.shape) for ahead, back in zip(forward, backward, strict=True)]
        return np.concatenate(forward, axis=1), np.concatenate(shaped, axis=1)

    def compare_halves(self, halves: Sequence[Draws]) -> tuple[list[FloatArray], list[FloatArray]]:
        """As `compare`, of each half under the other's fit: (B, C) of its draws, and (B C,) of those of q."""
        others = self.second, self.first
        # Seeded by the draws: an estimate depends only on its trace, at whichever checkpoint it is computed.
        rng = np.random.default_rng(zlib.crc32(halves[0].z.tobytes()))
        forward = [half.series(half.log_target - q.log_density(half.z)) for half, q in zip(halves, others, strict=True)]
        backward = [
            _proposal_log_ratios(self.relaxation, q, ahead.size, rng) for ahead, q in zip(forward, others, strict=True)
        ]
        return forward, backward


def _cholesky(covariance: FloatArray) -> FloatArray:
    return np.linalg.cholesky(covariance).astype(np.float64, copy=False)


def _inverse(root: FloatArray) -> FloatArray:
    """Of a lower triangular matrix; with many draws, products with it cost a third of triangular solves."""
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(root, np.eye(len(root)), lower=True, check_finite=False))


def _covariance(values: FloatArray, mean: FloatArray) -> FloatArray:
    centred = values - mean[:, None]
    return np.asarray(centred @ centred.T / max(values.shape[1] - 1, 1))


def halves_of(batches: int, n: int, chains: int) -> list[Rows]:
    """Of draws (B, N, C): each half's chains; of one chain, its batches."""
    everything = slice(None)
    if chains > 1:
        return [(everything, everything, slice(None, chains // 2)), (everything, everything, slice(chains // 2, None))]
    return [(slice(None, batches // 2), everything, everything), (slice(batches // 2, None), everything, everything)]


def _proposal_log_ratios(relaxation: Relaxation, q: Gaussian, count: int, rng: np.random.Generator) -> FloatArray:
    """log p*(z) - log q(z), (count,), of draws z from q."""
    noise = rng.standard_normal((len(q.mean), count))
    z = q.mean[:, None] + q.root @ noise
    _, log_normaliser = relaxation.conditional((relaxation.cholesky @ z).T + relaxation.bias)
    target = log_normaliser - 0.5 * np.einsum("ij,ij->j", z, z)
    log_q = -0.5 * np.einsum("ij,ij->j", noise, noise) - np.log(np.diag(q.root)).sum()
    return np.asarray(target - log_q)

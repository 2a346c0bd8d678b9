"""Exact answers: log Z, all marginals and independent samples of models that are narrow or special enough."""

from __future__ import annotations

from spinbench.reference.answer import ExactAnswer
from spinbench.reference.choice import DEFAULT_MAX_BYTES, METHODS, sample, solve

__all__ = ["DEFAULT_MAX_BYTES", "METHODS", "ExactAnswer", "sample", "solve"]

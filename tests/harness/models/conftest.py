"""Exact Forney models."""

from forney_truth import forney_truth

__all__ = ["forney_truth"]

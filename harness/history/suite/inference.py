"""The benchmarks `inference.track_METRIC`: method x backend on the tour's models."""

from .cells import tracked

globals().update(tracked("inference"))

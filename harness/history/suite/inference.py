"""The benchmarks `inference.track_METRIC`: method x backend on the tour's models."""

from .cells import benchmark_functions

globals().update(benchmark_functions("inference"))

"""The benchmarks `gate.track_METRIC`: the standard set, of which `experiment=gate` sweeps a part."""

from .cells import benchmark_functions

globals().update(benchmark_functions("gate"))

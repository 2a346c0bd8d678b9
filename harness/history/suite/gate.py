"""The benchmarks `gate.track_METRIC`: the cells of `experiment=gate`."""

from spinbench.history.asv_benchmarks import tracked

globals().update(tracked("gate"))

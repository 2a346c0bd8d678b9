"""The benchmarks `inference.track_METRIC`: method x backend on the tour's models."""

from spinbench.history.asv_benchmarks import tracked

globals().update(tracked("inference"))

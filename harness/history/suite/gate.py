"""The benchmarks `gate.track_METRIC`: the standard set, of which `experiment=gate` sweeps a part."""

from .cells import tracked

globals().update(tracked("gate"))

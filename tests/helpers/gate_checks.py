"""Which checks of the conformance suite the gate runs of every method, built in or an example."""

from __future__ import annotations

# What shows that an answer is right, keeps its law and can be had again.
GATE = {
    *("kernel", "plan", "accuracy, dense", "accuracy, dense, float32"),
    *("stationarity, dense", "calibration, dense", "determinism", "independence of batching", "end of iterations"),
}
# What JAX compiles for again, and other backends run as well.
LONG_ON_JAX = {"accuracy, dense, float32", "independence of batching"}
# Of the examples, where the gate does not compile for each.
EXAMPLES = {*GATE, "accuracy, three states", "calibration, three states", "17 chains", "hidden state", "kept states"}

"""What is run, and how it looks, where nobody says otherwise: the only names of methods and backends in the harness."""

from __future__ import annotations

METHOD, BACKEND = "gibbs", "numba"
# The backend that compiles nothing.
INTERPRETED = "numpy"
# Methods in the order in which they get colours and fillings: those that are compared most often differ in colour and
# not only in filling.
METHOD_ORDER = (
    *("gibbs", "dhmc", "block_gibbs", "bp", "exact", "pt"),
    *("blocks", "mf", "smc", "trw", "swendsen_wang", "wmb"),
    *("metropolis", "g_mf", "g_bp", "nuts", "wmb_lower", "forney_mf"),
    *("importance", "cftp", "mala", "nested", "gaussian_bound", "zanella"),
    *("multicanonical", "g_bp_single", "g_bp_multiple", "g_bp_sequential", "tempered_transitions", "rejection"),
    "elliptical_slice",
)
# Backends in the order in which they get lines and markers.
BACKEND_ORDER = (
    *("numba", "numpy", "jax", "torch", "dwave", "blackjax", "numpyro", "openjij", "pgmax", "pgmpy"),
    *("pyagrum", "pygms", "thrml", "cotengra", "ganak", "merlin", "libdai", "toulbar2", "cupy"),
)

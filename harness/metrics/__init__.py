"""What a result is worth: the numbers that every record has, and those of `spinbench.metrics`."""

from __future__ import annotations

# Tracked numbers; lower is better. A metric that was not measured is absent, one that has no value is `failed`.
METRICS = (
    "marginal_rmse",
    "log_z_error",
    "run_seconds",
    "step_seconds",
    "step_cpu_seconds",
    "compile_seconds",
    "seconds_per_ess",
    "samples_per_ess",
    "time_to_error",
)
# Records hold no number of this size: squares are numbers, too.
MAX_MAGNITUDE = 1e150
# Sweeps until chains have forgotten their starts, in records of sweeps that asked for it.
MIXING = "mixing"

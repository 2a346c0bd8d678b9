"""What a result is worth: the numbers that every record has, and those of `spinbench.metrics`."""

from __future__ import annotations

# Tracked metrics; lower is better. A metric that was not measured is missing; one without a value is `failed`.
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
# Records hold no larger numbers, so that squares stay finite.
MAX_MAGNITUDE = 1e150
# Name of the metric of sweeps until chains have forgotten their initial states; only in sweeps that request it.
MIXING = "mixing"

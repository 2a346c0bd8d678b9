"""What a result is worth: the numbers that every record has, and those of `spinbench.metrics`."""

from __future__ import annotations

# Tracked metrics and what they are; lower is better. A metric that was not measured is missing; one without a value is
# `failed`.
METRICS = {
    "marginal_rmse": "RMSE of all marginals against the exact ones",
    "log_z_error": "|log Z - exact log Z| in nats",
    "run_seconds": "seconds of the kept samples",
    "step_seconds": "CPU seconds of a step of all chains, of a GPU wall-clock: the first decile over the batches",
    "step_cpu_seconds": "CPU seconds of a step of all chains: the mean over the batches",
    "compile_seconds": "seconds of compiling",
    "seconds_per_ess": "`run_seconds` over the median effective sample size of the variables",
    "samples_per_ess": "kept samples of all chains over the same",
    "time_to_error": "seconds of burn-in and sampling after which the RMSE stays below 0.01",
}
# Records hold no larger numbers, so that squares stay finite.
MAX_MAGNITUDE = 1e150
# Name of the metric of sweeps until chains have forgotten their initial states; only in sweeps that request it.
MIXING = "mixing"

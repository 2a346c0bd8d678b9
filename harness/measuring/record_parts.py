"""The parts of a record: their types, and what they mean."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

# as `metrics.MAX_MAGNITUDE`, whose squares are numbers, too; msgspec needs it in a type
_Float = Annotated[float, Meta(gt=-1e150, lt=1e150)]
_Integer = Annotated[int, Meta(ge=-(2**63) + 1, le=2**63 - 1)]
Number = _Integer | _Float
Size = Annotated[int, Meta(ge=0, le=2**63 - 1)] | Annotated[float, Meta(ge=0, lt=1e150)]
# Unix time that a calendar has.
Time = Annotated[int, Meta(ge=0, lt=250_000_000_000)] | Annotated[float, Meta(ge=0, lt=2.5e11)]
# Of a model, method or backend, which a command may hold: no path that leads out of the groups.
Name = Annotated[str, Meta(pattern=r"(?s)^(?!/)(?!.*(\.\.|:/|[\\$]))")]

# Of version 0.1, which has one number for standard errors and error bounds, so many count as a bound.
EARLIER_ERRORS = 3.0


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a record. One with a default may be missing, one that allows None may be null."""


class Axes(Part, frozen=True, kw_only=True):
    """Labels.

    Attributes:
        model: with those of its parameters that are not at their defaults, "grid(rows=20)".
        method: its name.
        backend: its name, with a tier or kernel that was asked for.
    """

    model: str
    method: str
    backend: str

    def as_dict(self) -> dict[str, str]:
        """By their names."""
        return msgspec.structs.asdict(self)


class CodeState(Part, frozen=True, kw_only=True):
    """The code that was measured.

    Attributes:
        commit: full hash; None outside of git.
        dirty: whether tracked files differ from it.
        diff: hash of the difference.
        spinbench: version and state of spinbench itself, where another repository's commits are measured.
        elsewhere: the folder whose code ran, where that is not the repository's.
    """

    commit: str | None = None
    dirty: bool | None = None
    diff: str | None = None
    spinbench: str | None = None
    elsewhere: str | None = None


class Metric(Part, frozen=True, kw_only=True):
    """A tracked number.

    Attributes:
        value: finite; None where there is none.
        standard_error: of the value.
        scatter: of the batches behind a time of steps: the logarithm of their median over their first decile.
        failed: why there is no value.
        remark: what else there is to say.
        samples: several values in the place of one.
        title: heading, of a metric that is a plugin's.
        better: "lower" or "higher", of the same.
    """

    value: Number | None = None
    standard_error: Size | None = None
    scatter: Size | None = None
    failed: str | None = None
    remark: str | None = None
    samples: list[Number] | None = None
    title: str | None = None
    better: str | None = None


class Timing(Part, frozen=True, kw_only=True):
    """Wall-clock seconds of the parts of a run, as `spinbench.inference.batch_timings.Seconds` has them.

    Attributes:
        run: of kept samples.
        compile: of tables to the device, and of the first call of every function.
        plan: of the method's work on the model alone.
        burn_in: of dropped samples.
        transfer: between host and device; it is within the others.
        total: of all parts.
    """

    run: Number
    compile: Number
    plan: Number = 0.0
    burn_in: Number = 0.0
    transfer: Number | None = None
    total: Number | None = None


class BatchTimes(Part, frozen=True, kw_only=True):
    """Seconds of a step, over the measured batches of a run.

    Attributes:
        count: batches.
        wall, cpu: first decile, quartile and median of wall and of CPU seconds.
        mean_cpu: CPU seconds a step, over all batches.
    """

    count: Number
    wall: list[Number | None] | None = None
    cpu: list[Number | None] | None = None
    mean_cpu: Number | None = None


class Load(Part, frozen=True, kw_only=True):
    """How busy the machine was.

    Attributes:
        cpu_seconds, wall_seconds: of the process, and of the clock.
        waited_seconds: for which others had the processor.
        yardstick: seconds of a fixed loop before and after the run.
    """

    cpu_seconds: Number | None = None
    wall_seconds: Number | None = None
    waited_seconds: Number | None = None
    yardstick: list[Number] | None = None


class Memory(Part, frozen=True, kw_only=True):
    """Of the measuring process.

    Attributes:
        before_bytes: before the run.
        peak_bytes: the most during it.
    """

    before_bytes: Number | None = None
    peak_bytes: Number | None = None


class Bound(Part, frozen=True, kw_only=True):
    """A bound on log Z.

    Attributes:
        value: in nats; None where it is infinite.
        side: "lower" or "upper".
        grade: "exact", "certified", "probable" or "assumed".
        by: who found it.
        delta: with which probability, at most, it is wrong.
    """

    value: Number | None
    side: str
    grade: str
    by: str
    delta: Number


class Checkpoint(Part, frozen=True, kw_only=True):
    """What a run knew at a time.

    Attributes:
        seconds: of burn-in and sampling.
        samples: so far.
        marginal_rmse: of the marginals.
        log_z: in nats.
        log_z_error: |log Z - exact log Z|.
    """

    seconds: Number
    samples: Number
    marginal_rmse: Number | None
    log_z: Number | None
    log_z_error: Number | None


class Result(Part, frozen=True, kw_only=True, rename={"timing": "seconds", "batches": "laps"}):
    """What a run came to.

    Attributes:
        tier: "native" or "generic".
        kernel: whose kernel ran.
        notes: why another kernel did not.
        status: the verdict, "ok" or what speaks against the numbers.
        levels: of "marginals" and "log_z", what supports them, from "exact" to "doubtful".
        compilation: "fresh", "warm", "cached" or "none".
        timing: seconds.
        batches: seconds of a step.
        samples, chains: how many; of each chain.
        burn_in: samples that were dropped.
        log_z: in nats.
        log_z_se: its standard error; of records without an error bound a third of that bound.
        log_z_error_bound: its error bound.
        log_z_kind: "estimate", "exact", "lower" or "upper".
        log_z_estimates: value and standard error of each estimator that ran.
        bounds: on log Z.
        ess_min, ess_median: effective sample sizes over variables.
        r_hat_max: the largest R-hat of a variable.
        marginals_se: root mean square of the marginals' standard errors.
        marginals_error_bound: root mean square of their error bounds.
        marginals_claim: of earlier versions: a third of that.
        marginal_rmse_se: standard error of the marginals' RMSE.
        diagnostics: what the method says of itself.
        load: how busy the machine was.
        memory: of the measuring process.
        answer: fingerprint of the marginals and log Z.
        numbers: fingerprint of all that metrics may be of.
        trajectory: accuracy over time.
    """

    tier: str
    kernel: str | None = None
    notes: list[str] = []
    status: str
    levels: dict[str, str] | None = None
    compilation: str
    timing: Timing
    batches: BatchTimes | None = None
    samples: Number | None = None
    chains: Number | None = None
    burn_in: Number | None = None
    log_z: Number | None = None
    log_z_se: Number | None = None
    log_z_error_bound: Number | None = None
    log_z_kind: str | None
    log_z_estimates: dict[str, list[Number | None]] | None = None
    bounds: list[Bound] = []
    ess_min: Number | None = None
    ess_median: Number | None = None
    r_hat_max: Number | None
    marginals_se: Number | None = None
    marginals_error_bound: Number | None = None
    marginals_claim: Number | None = None
    marginal_rmse_se: Number | None = None
    diagnostics: dict[str, Any] | None = None
    load: Load | None = None
    memory: Memory | None = None
    answer: str | None = None
    numbers: str | None = None
    trajectory: list[Checkpoint]

    @property
    def largest_log_z_error(self) -> Number | None:
        """The error bound of log Z; of earlier versions, which have one number for both errors, three times that."""
        return _bound_or(self.log_z_error_bound, self.log_z_se)

    @property
    def largest_marginal_error(self) -> Number | None:
        """Root mean square of the marginals' error bounds; of earlier versions as of log Z."""
        return _bound_or(self.marginals_error_bound, self.marginals_claim)


def _bound_or(error_bound: Number | None, claim: Number | None) -> Number | None:
    if error_bound is not None or claim is None:
        return error_bound
    return EARLIER_ERRORS * claim


class Reference(Part, frozen=True, kw_only=True):
    """The exact answer.

    Attributes:
        log_z: in nats.
        method: which solver gave it.
        reason: why there is none.
    """

    log_z: Number | None = None
    method: str | None = None
    reason: str | None = None


class Environment(Part, frozen=True, kw_only=True):
    """Where it was measured; all are None or empty where the process died before it could tell.

    Attributes:
        python, implementation: version and name of the interpreter.
        versions: of packages.
        cpu: the processor's name.
        cores: logical processors.
        affinity: those that the process could run on.
        threads: variables that limit threads.
        gpus: names of devices.
        max_gib: memory of exact answers.
        platform, hostname: of the machine.
    """

    python: str | None = None
    implementation: str | None = None
    versions: dict[str, Any] = {}
    cpu: str | None = None
    cores: Number | None = None
    affinity: list[Number] | None = None
    threads: dict[str, Any] = {}
    gpus: list[str] | None = None
    max_gib: str | None = None
    platform: str | None = None
    hostname: str | None = None

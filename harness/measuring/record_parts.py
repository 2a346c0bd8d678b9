"""The parts of a record: their types, and what they mean."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

# `metrics.MAX_MAGNITUDE`, repeated as a literal since msgspec needs it in a type: squares have to stay finite
_Float = Annotated[float, Meta(gt=-1e150, lt=1e150)]
_Integer = Annotated[int, Meta(ge=-(2**63) + 1, le=2**63 - 1)]
Number = _Integer | _Float
Size = Annotated[int, Meta(ge=0, le=2**63 - 1)] | Annotated[float, Meta(ge=0, lt=1e150)]
# Unix time within the range of calendar dates.
Time = Annotated[int, Meta(ge=0, lt=250_000_000_000)] | Annotated[float, Meta(ge=0, lt=2.5e11)]
# Name of a model, method or backend, which may be part of a command: not a path that leaves its configuration group.
Name = Annotated[str, Meta(pattern=r"(?s)^(?!/)(?!.*(\.\.|:/|[\\$]))")]

# Version 0.1 stored a single number as standard error and as error bound; this many standard errors are read as a
# bound.
EARLIER_ERRORS = 3.0


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a record. One with a default may be missing, one that allows None may be null."""


class Axes(Part, frozen=True, kw_only=True):
    """Labels.

    Attributes:
        model: the model's name, with those of its parameters that are not at their defaults, "grid(rows=20)".
        method: the method's name.
        backend: the backend's name, with a tier or kernel that was asked for.
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
        commit: full hash of the commit that was measured; None outside of git.
        dirty: whether tracked files differ from the commit.
        diff: hash of the difference between the tracked files and the commit.
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
        value: the metric's value, finite; None where there is none.
        standard_error: standard error of the value.
        scatter: of a time of steps, the logarithm of the batches' median over their first decile.
        failed: why there is no value.
        remark: a sentence on the value.
        samples: several values in the place of one.
        title: heading of a plugin's metric.
        better: "lower" or "higher", which values of a plugin's metric are better.
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
        run: seconds of the kept samples.
        compile: seconds of tables to the device, and of the first call of every function.
        plan: seconds of the method's work on the model alone.
        burn_in: seconds of the dropped samples.
        transfer: seconds of copies between host and device, which are within the others.
        total: seconds of all parts.
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
        count: number of batches.
        wall: wall-clock seconds a step over the batches: first decile, quartile and median.
        cpu: the same of CPU seconds.
        mean_cpu: mean CPU seconds a step, over all batches.
    """

    count: Number
    wall: list[Number | None] | None = None
    cpu: list[Number | None] | None = None
    mean_cpu: Number | None = None


class Load(Part, frozen=True, kw_only=True):
    """How busy the machine was.

    Attributes:
        cpu_seconds: CPU seconds of the process during the run.
        wall_seconds: wall-clock seconds of the run.
        waited_seconds: seconds for which the process waited for the processor.
        yardstick: seconds of a fixed loop before and after the run.
    """

    cpu_seconds: Number | None = None
    wall_seconds: Number | None = None
    waited_seconds: Number | None = None
    yardstick: list[Number] | None = None


class Memory(Part, frozen=True, kw_only=True):
    """Of the measuring process.

    Attributes:
        before_bytes: memory before the run.
        peak_bytes: the most memory during the run.
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
        seconds: seconds of burn-in and sampling until then.
        samples: samples of each chain until then.
        marginal_rmse: RMSE of the marginals.
        log_z: log Z in nats.
        log_z_error: |log Z - exact log Z| in nats.
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
        kernel: the distribution whose kernel ran.
        notes: why another kernel did not run, and what a peer does otherwise.
        status: the verdict, "ok" or what speaks against the numbers.
        levels: of "marginals" and "log_z", what supports them, from "exact" to "doubtful".
        reasons: why each of them is doubtful.
        compilation: "fresh", "warm", "cached" or "none".
        timing: seconds.
        batches: seconds of a step.
        samples: kept samples of each chain.
        chains: number of chains.
        burn_in: samples of each chain that were dropped.
        variables: number of the model's variables.
        log_z: log Z in nats.
        log_z_se: standard error of log Z in nats; of records without an error bound a third of that bound.
        log_z_error_bound: error bound of log Z in nats.
        log_z_kind: what `log_z` is: "estimate", "exact", "lower" or "upper".
        log_z_estimates: value and standard error of each estimator that ran.
        bounds: bounds on log Z in nats, each with its grade.
        ess_min: least effective sample size of a variable.
        ess_median: median effective sample size of the variables.
        r_hat_max: the largest R-hat of a variable.
        marginals_se: root mean square of the marginals' standard errors.
        marginals_error_bound: root mean square of the marginals' error bounds.
        marginals_claim: of earlier versions: a third of `marginals_error_bound`.
        marginal_rmse_se: standard error of the marginals' RMSE.
        diagnostics: what the method says of itself.
        load: how busy the machine was.
        memory: of the measuring process.
        answer: fingerprint of the marginals and log Z.
        numbers: fingerprint of all numbers that metrics are made of.
        trajectory: accuracy over time.
    """

    tier: str
    kernel: str | None = None
    notes: list[str] = []
    status: str
    levels: dict[str, str] | None = None
    reasons: dict[str, str] | None = None
    compilation: str
    timing: Timing
    batches: BatchTimes | None = None
    samples: Number | None = None
    chains: Number | None = None
    burn_in: Number | None = None
    variables: Number | None = None
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


class Environment(Part, frozen=True, kw_only=True):
    """Where it was measured; all are None or empty where the process died before it could tell.

    Attributes:
        python: version of Python.
        implementation: name of the interpreter, such as CPython.
        versions: version of each package.
        cpu: the processor's name.
        cores: number of logical processors.
        affinity: logical processors that the process could run on.
        threads: environment variables that limit threads.
        gpus: card, memory and driver of each GPU.
        max_gib: `SPINBENCH_MAX_GIB`, where it was set.
        platform: the operating system.
        hostname: the machine's name.
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

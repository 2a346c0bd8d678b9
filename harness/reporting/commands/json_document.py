"""What is in the JSON document that a command prints with `--json`.

Names are those of what the Python functions return. JSON has no infinity and no NaN: both are null, as is what there
is none of. Commands add names within a version; a name that changes its meaning or goes raises `VERSION`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from spinbench.api.bounds import Bound
from spinbench.inference.bracketing.interval import Interval
from spinbench.reporting.commands.gate_document import GateFields

VERSION = 1


class Support(msgspec.Struct, frozen=True, kw_only=True):
    """What a number rests on.

    Attributes:
        level: exact, certified, bounded, supported, converged or doubtful.
        error_bound: how far off it may be, at this level; of marginals that of the worst one.
        reason: why it is doubtful; or empty.
    """

    level: str
    error_bound: float | None
    reason: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Of run, exact and advise, as `spinbench.Result`.

    Attributes:
        model, method, backend: names.
        settings: of the method.
        seed, chains, samples, burn_in: as run; samples and burn-in are those of each chain.
        precision, device: as run.
        status: ok, or what speaks against the numbers.
        evidence: what "log_z" and "marginals" rest on.
        log_z: natural logarithm of Z.
        log_z_se, log_z_error_bound: its standard error and error bound, in nats.
        log_z_kind: exact, estimate, lower or upper.
        bounds: on log Z.
        marginals: columns of equal length, variable, state, marginal, and where there are any variable_name,
            state_name, standard_error, error_bound, ess and r_hat, as in the file that `--output FILE.csv` writes.
        best_state, best_names: the heaviest state, where it was asked for, and pairs of names of variable and state.
        best_log_weight: its log weight.
        reached: whether the tolerance of `--until` was; null where none was given.
        seconds: wall-clock of plan, compile, burn_in, run, and transfer within them.
        diagnostics: numbers of the method, such as the acceptance rate, or an order's width.
        notes: sentences on what fell away before the run, and on what was not asked.
    """

    model: str
    method: str
    backend: str
    settings: dict[str, Any]
    seed: int
    chains: int
    samples: int
    burn_in: int
    precision: str
    device: str
    status: str
    evidence: dict[str, Support]
    log_z: float | None
    log_z_se: float | None
    log_z_error_bound: float | None
    log_z_kind: str
    bounds: list[Bound]
    marginals: dict[str, list[float | str]] | None
    best_state: list[int] | None
    best_log_weight: float | None
    reached: bool | None
    seconds: dict[str, float]
    diagnostics: dict[str, float]
    notes: list[str]
    best_names: list[tuple[str, str]] | None = None


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """Of a race.

    Attributes:
        candidate, method, backend: names.
        settings: of the method.
        runs, seconds: how many it had, and what they took.
        status: its verdict on its answer.
        error, distance: what it claims, and how far it is from the winner.
        fate: why it went on or was dropped.
    """

    candidate: str
    method: str
    backend: str
    settings: dict[str, Any]
    runs: int
    seconds: float
    status: str
    error: float | None
    distance: float | None
    fate: str


class AdviceFields(msgspec.Struct, frozen=True, kw_only=True):
    """As `spinbench.advise` returns; its answer stands beside it.

    Attributes:
        target: marginals or log_z.
        resolved: whether the answer may be believed.
        level: what the target rests on.
        error: root mean square error that is to be expected of the target.
        verdict, next, inexact: sentences: by whom it is resolved, what to try else, why there is no exact answer.
        budget, seconds: allowed and taken.
        cpu: whether seconds are those of the CPU.
        interrupted: whether Ctrl-C ended the race.
        command, python: what makes the answer again.
        race: candidates.
    """

    target: str
    resolved: bool
    level: str
    error: float | None
    verdict: str
    next: str
    inexact: str
    budget: float
    seconds: float
    cpu: bool
    interrupted: bool
    command: str
    python: str
    race: list[Candidate]


class MixingFields(msgspec.Struct, frozen=True, kw_only=True):
    """As `spinbench.mixing` returns.

    Attributes:
        model, method, backend: names.
        verdict: resolved or not resolved.
        sweeps: after which the bound on the distance is below `tv`, 95 % sure.
        tv: the distance in total variation that was asked for.
        met: the share of pairs that have met.
        times: meeting times in sweeps, -1 of pairs that have not met.
        seconds: spent.
    """

    model: str
    method: str
    backend: str
    verdict: str
    sweeps: int | None
    tv: float
    met: float
    times: list[int]
    seconds: float


class CheckFields(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that an audit compares.

    Attributes:
        name: what.
        p_value: of the worst comparison, adjusted for how many there are.
        fails: whether it speaks against the samples, all checks considered.
        detail: of the worst comparison, in words.
    """

    name: str
    p_value: float
    fails: bool
    detail: str


class AuditFields(msgspec.Struct, frozen=True, kw_only=True):
    """As `spinbench.audit` returns, without the frequencies, which `--output FILE.csv` writes.

    Attributes:
        model: its name.
        passes: whether no check fails.
        alpha: probability with which draws of the law itself fail.
        truth: what the samples were compared with.
        draws, effective: draws, and independent draws that their weights are worth.
        beta, beta_se, beta_by: inverse temperature that fits the samples, its standard error, and how it was fitted.
        r_hat: the largest split R-hat.
        notes: what was assumed of the samples, and what could not be compared.
        checks: what was compared.
    """

    model: str
    passes: bool
    alpha: float
    truth: str
    draws: int
    effective: float
    beta: float | None
    beta_se: float | None
    beta_by: str
    r_hat: float | None
    notes: list[str]
    checks: list[CheckFields]


class Document(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The whole.

    Attributes:
        version: of this format.
        command: run, exact, advise, bracket, mixing, audit or gate.
        exit_status: that the command ends with.
        message: why there is no answer.
        answer: of run, exact and advise.
        advice: of advise.
        interval: of bracket.
        mixing: of mixing.
        audit: of audit.
        gate: of gate.
    """

    version: int
    command: str
    exit_status: int
    message: str | None = None
    answer: Answer | None = None
    advice: AdviceFields | None = None
    interval: Interval | None = None
    mixing: MixingFields | None = None
    audit: AuditFields | None = None
    gate: GateFields | None = None

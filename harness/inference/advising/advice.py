"""What a race comes to: an answer, a verdict, and how to have the answer again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from spinbench.foundation.overrides import command
from spinbench.inference.advising import ranking
from spinbench.inference.advising.candidates import Candidate
from spinbench.inference.advising.ranking import Target, View
from spinbench.inference.budget import Budget
from spinbench.inference.checks.evidence import LEVELS, Evidence, Level, bracket_evidence
from spinbench.inference.result import Result


@dataclass(frozen=True)
class Entry:
    """One candidate's race.

    Attributes:
        candidate: its label, "blocks(size=4096).numba".
        kind: how it goes about it; candidates of other kinds are its witnesses.
        runs: that it made, each longer than the last.
        seconds: of all of them, loading and compiling included.
        samples: of each chain in the last.
        status: its own verdict; empty where it gave no answer.
        error: what it claims: root mean square over marginals, or of log Z; None where it claims nothing.
        distance: root mean square distance from what candidates of other kinds say together; None without any.
        fate: "won", or why it fell out.
        method, backend, settings: of the candidate.
        seed: of its runs.
        asked: the budget of its last run that gave an answer; in samples it makes the same again. None: none did.
        result: of that run.
        failed: whether it gave none because of a defect.
    """

    candidate: str
    kind: str
    runs: int
    seconds: float
    samples: int
    status: str
    error: float | None
    distance: float | None
    fate: str
    method: str
    backend: str
    settings: Mapping[str, Any]
    seed: int
    asked: Budget | None
    result: Result | None = field(repr=False, compare=False)
    failed: bool


@dataclass(frozen=True)
class Advice:
    """What `spinbench.advise` returns.

    Attributes:
        answer: the winner's result; `bounds` are the tightest of all candidates.
        error: root mean square error that is to be expected of the target.
        resolved: whether the answer may be believed.
        verdict: "resolved" or "unresolved", and by whom, in one sentence.
        next: what to try where it is unresolved; else empty.
        inexact: why there is no exact answer; empty where it is the answer, or was not asked for.
        race: one entry a candidate; none where the exact answer fitted.
        target: "marginals" or "log_z".
        budget, seconds: allowed and taken, of wall-clock or of the CPU; cpu: whether of the CPU.
        chains: of every run; seed: of the first candidate's, those of others follow.
        python: the call that makes the answer again, of a `model`.
        command: the same on the command line; empty where no name or file of the model is known.
        interrupted: whether the race ended by Ctrl-C, before its budget.
    """

    answer: Result
    error: float
    resolved: bool
    verdict: str
    next: str
    inexact: str
    race: tuple[Entry, ...]
    target: Target
    budget: float
    seconds: float
    chains: int
    seed: int
    python: str
    command: str
    cpu: bool = False
    interrupted: bool = False

    @property
    def level(self) -> Level:
        """What the target rests on: its bracket where that is narrow, else others ("supported"), else the winner's own
        checks ("converged")."""
        level = self.answer.evidence[self.target].level
        if self.resolved and (bracket := narrow_bracket(self.answer, self.target)) is not None:
            return min(level, bracket.level, key=LEVELS.index)
        if self.resolved and LEVELS.index(level) > LEVELS.index("supported"):
            return "supported"
        return level

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from spinbench.inference.notebook.display import advice_html

        return advice_html(self)

    def __repr__(self) -> str:
        lines = [f"Advice({self.verdict}", repr(self.answer), f"{self.target} ± {self.error:.2g}", self.python]
        return ";\n  ".join(filter(None, [*lines, self.next])) + ")"


def python_call(candidate: Candidate, budget: Budget, chains: int, seed: int) -> str:
    """`spinbench.run` with all that the answer depends on."""
    arguments = f"{candidate.method!r}, {candidate.backend!r}, {str(budget)!r}"
    if budget.samples is not None:
        arguments = f"{candidate.method!r}, {candidate.backend!r}, {budget.samples}, burn_in={budget.burn_in}"
    settings = "".join(f", {name}={value!r}" for name, value in candidate.settings.items())
    return f"spinbench.run(model, {arguments}, chains={chains}, seed={seed}{settings})"


def sweep_command(source: Mapping[str, object], candidate: Candidate, budget: Budget, chains: int, seed: int) -> str:
    """`spinbench sweep` of the same cell.

    Args:
        source: the model's configuration: {"model": "uai14/DBN_11"}, or that of a file.
    """
    numbers = {"seconds": budget.seconds, "samples": budget.samples, "burn_in": budget.burn_in, "cpu": budget.cpu}
    settings = {
        **source,
        "method": candidate.method,
        **{f"method.{name}": value for name, value in candidate.settings.items()},
        "backend": candidate.backend,
        "budget": "standard" if budget.samples is None else "samples",
        **{f"budget.{name}": value for name, value in numbers.items() if value is not None},
        "chains": chains,
        "seed": seed,
    }
    return command(settings)


class Verdict(NamedTuple):
    """Whether it is resolved, why or why not in one sentence, and what to try next."""

    resolved: bool
    sentence: str
    next: str


def narrow_bracket(answer: Result, target: Target) -> Evidence | None:
    """What a bracket says of log Z, if that is the target and it leaves no gross error; else None.

    Brackets hold whether anything has mixed or not, so that nobody needs to agree.
    """
    if target != "log_z" or answer.log_z is None:
        return None
    return bracket_evidence(answer.log_z, answer.bounds, ranking.LARGEST["log_z"])


def conclude(views: Sequence[View], budget: float, target: Target, bracket: Evidence | None = None) -> Verdict:
    """Whether the first of the views, which are in order, may be believed.

    Args:
        views: of all candidates.
        budget: of the race, in seconds.
        target: what is judged.
        bracket: `narrow_bracket` of the first view's answer, between the bounds of all candidates.
    """
    winner = views[0]
    name, longer = winner.candidate.label, f"a budget of {4 * budget:g} s"
    if winner.exact:
        return Verdict(True, f"resolved: {name} is exact here, nothing had to be split", "")
    if bracket is not None:
        grade = "certified" if bracket.level == "certified" else "probable"
        return Verdict(True, f"resolved: {name} is at most {bracket.error_bound:.2g} off, by a {grade} bracket", "")
    others = ranking.witnesses(views, winner)
    if not winner.believed:
        best = f"{name} claims no error"
        if winner.doubt:
            best = f"{name} comes closest, and says {winner.doubt!r}"
        return Verdict(False, f"unresolved: nobody's verdict is ok; {best}", _more(views, longer))
    if contradicting := [other for other in others if ranking.contradict(winner, other)]:
        named = " and ".join(
            f"{other.candidate.label} by {np.sqrt(ranking.mean_square(winner, other)):.2g}" for other in contradicting
        )
        return Verdict(
            False, f"unresolved: {name} is contradicted by {named}", f"{longer}, which one of them will not survive"
        )
    others = ranking.sharp(views, winner, target)
    if not others:
        return Verdict(
            False,
            f"unresolved: {name} believes its answer, but nobody of another kind has one that is believed and as sharp",
            _more(views, longer),
        )
    agreeing = " and ".join(
        f"{other.candidate.label} ({np.sqrt(ranking.mean_square(winner, other)):.1g} apart)" for other in others
    )
    return Verdict(True, f"resolved: {name} agrees with {agreeing}", "")


def _more(views: Sequence[View], longer: str) -> str:
    present = {view.candidate.method for view in views}
    if "pt" not in present:
        return f"{longer}, or pt among the candidates, which gets out of wells"
    return f"{longer}; failing that, blocks of a larger size where the model has hard zeros, wmb of a larger ibound"

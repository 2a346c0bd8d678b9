"""How far off each candidate probably is, without the truth: by its own claim, and by candidates of other kinds.

The reference of a candidate is the mean of those of other kinds that are believed, one of each kind, weighted by their
claims and by what these leave unexplained between them (DerSimonian and Laird, "Meta-analysis in clinical trials",
Controlled Clinical Trials 1986).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from spinbench.inference.advising.candidates import Candidate
from spinbench.inference.result import Result
from spinbench.mathematics.claims import BOUND

FloatArray = npt.NDArray[np.float64]
Target = Literal["marginals", "log_z"]
TARGETS: tuple[Target, ...] = ("marginals", "log_z")

# Factor on the squared error of an estimate that carries a warning.
DISBELIEF = 9.0
# Smallest squared error of such an estimate (an error of 0.1).
LEAST_DOUBTED = 0.01
# The same factor for an iteration, which reports no errors, that has not converged.
UNCONVERGED = 4.0
# Largest distance, in joint standard errors, at which two candidates agree.
AGREEMENT = 4.0
# Squared error that stands for an infinite one.
FARTHEST: dict[Target, float] = {"marginals": 0.25, "log_z": np.inf}
# Largest root-mean-square error of a witness.
LARGEST: dict[Target, float] = {"marginals": 0.05, "log_z": 0.5}
# A witness with a larger error is accepted if its error is at most this many times the candidate's.
BLUNTER = 3.0
# Smallest mean square that is compared; smaller ones are rounding errors.
FLOOR = 1e-6
# Floor of squared errors, whose inverses weight the witnesses.
CONSTANT = 1e-12


@dataclass(frozen=True)
class View:
    """What a candidate says, as far as the target is concerned.

    Attributes:
        candidate: who.
        values: (N,) marginals, of all states one after another, or log Z alone.
        claim: mean square of the standard errors that would have its error bounds; None where nothing is claimed.
        believed: whether its own verdict holds: "ok", as far as the target is concerned.
        exact: whether it is the exact answer.
        doubt: of its verdict.
        standard: mean square of its standard errors; None where there are none.
    """

    candidate: Candidate
    values: FloatArray
    claim: float | None
    believed: bool
    exact: bool
    doubt: str
    standard: float | None = None

    @property
    def kind(self) -> str:
        return self.candidate.kind

    def summary(self) -> str:
        """Of log Z, or of how exact marginals are claimed to be, in a few words."""
        number = f"log Z = {self.values[0]:.8g}" if len(self.values) == 1 else "marginals"
        if self.claim is not None and not self.exact:
            number += f" ± {np.sqrt(self.own):.2g}"
        remark = "exact" if self.exact else self.doubt
        return f"{number} ({', '.join(filter(None, (self.candidate.label, remark)))})"

    @property
    def own(self) -> float:
        """Its claim, more where it is not believed."""
        assert self.claim is not None
        if self.believed:
            return self.claim
        return max(DISBELIEF * self.claim, LEAST_DOUBTED)


@dataclass(frozen=True)
class Reference:
    """What candidates of other kinds say together.

    Attributes:
        values: (N,); variance: of their mean, as a mean square.
    """

    values: FloatArray
    variance: float


def view(candidate: Candidate, result: Result, target: Target) -> View | None:
    """None where the result says nothing of the target, or no more than a bound."""
    if result.log_z_kind == "exact" and target == "log_z" and result.log_z is not None:
        return View(candidate, np.array([result.log_z]), None, believed=True, exact=True, doubt="")
    values, error_bounds = _numbers(result, target)
    if values is None or not np.isfinite(values).all():
        return None
    doubt = ", ".join(flag for flag in result.status.split(", ") if flag != "ok" and concerns(flag, target))
    claim = None
    if error_bounds is not None:
        with np.errstate(over="ignore"):
            claim = float(np.mean((error_bounds / BOUND) ** 2))
        if not np.isfinite(claim):
            claim, doubt = FARTHEST[target], doubt or "nothing claimed"
    exact = result.log_z_kind == "exact" and not doubt
    errors = flat(result.marginals_se if target == "marginals" else result.log_z_se)
    standard = None if errors is None else float(np.mean(errors**2))
    return View(candidate, values, claim, believed=not doubt, exact=exact, doubt=doubt, standard=standard)


def concerns(doubt: str, target: Target) -> bool:
    """Whether a doubt of a verdict is one of the target; log Z of chains that have not mixed is in doubt, too."""
    return target == "log_z" or not doubt.startswith("log Z")


def _numbers(result: Result, target: Target) -> tuple[FloatArray | None, FloatArray | None]:
    if target == "log_z":
        if result.log_z is None or result.log_z_kind != "estimate":
            return None, None
        return np.array([result.log_z]), flat(result.log_z_error_bound)
    return flat(result.marginals), flat(result.marginals_error_bound)


def flat(values: object) -> FloatArray | None:
    """All states of all variables one after another."""
    if values is None:
        return None
    if isinstance(values, list | tuple):
        return np.concatenate([np.zeros(0), *(np.asarray(part, dtype=np.float64) for part in values)])
    return np.asarray(values, dtype=np.float64)


def witnesses(views: Sequence[View], of: View) -> list[View]:
    """The believed candidates of other kinds, the one of least claim of each."""
    others = [other for other in views if other.kind != of.kind and other.believed and other.claim is not None]
    others.sort(key=lambda other: other.claim or 0.0, reverse=True)
    return list({other.kind: other for other in others}.values())


def sharp(views: Sequence[View], of: View, target: Target) -> list[View]:
    """Witnesses whose claims are small enough that they would see a gross error of a view."""
    largest = max(LARGEST[target] ** 2, BLUNTER**2 * (of.claim or 0.0))
    return [other for other in witnesses(views, of) if (other.claim or 0.0) <= largest]


def reference(pool: Sequence[View]) -> Reference | None:
    """The mean of witnesses; None of none."""
    if not pool:
        return None
    claims = np.array([max(view.claim or 0.0, CONSTANT) for view in pool])
    values = np.array([view.values for view in pool])
    weights = 1 / claims
    mean = weights @ values / weights.sum()
    if len(pool) > 1:
        spread = weights @ np.mean((values - mean) ** 2, axis=1)
        scale = weights.sum() - (weights**2).sum() / weights.sum()
        # DerSimonian and Laird's τ²: the variance between witnesses beyond their standard errors.
        weights = 1 / (claims + max(0.0, (spread - (len(pool) - 1)) / scale))
        mean = weights @ values / weights.sum()
    return Reference(mean, float(1 / weights.sum()))


def score(view: View, views: Sequence[View]) -> float:
    """The mean square error that is to be expected; infinite where nothing speaks for the view."""
    if view.exact:
        return 0.0
    reference_values = reference(witnesses(views, view))
    if view.claim is None:
        if reference_values is None:
            return np.inf
        return _fixed_point_error(view, reference_values)
    expected = view.own
    if reference_values is None or np.isinf(expected):
        return expected
    distance, joint = mean_square(view, reference_values), expected + reference_values.variance
    # 3 √(2/N) is three standard deviations of a mean of N squared normal numbers: smaller distances are chance.
    excess = max(0.0, distance - joint * (1 + 3 * np.sqrt(2 / len(view.values))))
    return expected + excess * expected / joint if joint > 0 else expected


def _fixed_point_error(view: View, pool: Reference) -> float:
    noise = 2 * np.sqrt(2 / len(view.values)) * pool.variance
    square = max(mean_square(view, pool) - pool.variance, 0.0) + noise
    return float(square * (1.0 if view.believed else UNCONVERGED))


def mean_square(view: View, other: View | Reference) -> float:
    """Distance of a view from another, or from a reference."""
    return float(np.mean((view.values - other.values) ** 2))


def contradict(view: View, other: View) -> bool:
    """Whether two views are further apart than both their claims explain."""
    return mean_square(view, other) > AGREEMENT**2 * ((view.claim or 0.0) + (other.claim or 0.0)) + FLOOR


def order(views: Sequence[View]) -> list[View]:
    """From the best to the worst; who is not believed never stands before one who is."""
    scores = {id(view): score(view, views) for view in views}
    return sorted(views, key=lambda view: (not is_trusted(view, views), scores[id(view)]))


def is_trusted(view: View, views: Sequence[View]) -> bool:
    """Whether its verdict is ok and, of what claims no errors, somebody else's is, too."""
    return view.believed and (view.claim is not None or view.exact or bool(witnesses(views, view)))

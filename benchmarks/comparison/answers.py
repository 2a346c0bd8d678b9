"""What contenders answer, and judges that hold it against an exact answer: a fast wrong answer counts for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

WORST_RATIO = 25.0
"""Squared error of the mean over calls, in units of its estimate from the scatter between calls, above which a sampler
is biased. With 5 calls and one slow mode the ratio is the square of Student's t with 4 degrees of freedom: above 25
with probability 0.8 %; over many independent sites it stays near 1."""


class Answer(NamedTuple):
    """What one call found.

    Attributes:
        marginals: (N,) p(s_i = 1), or all tables of single variables, one after another; None where not computed.
        log_z: natural logarithm of Z; None where not computed.
    """

    marginals: FloatArray | None = None
    log_z: float | None = None


class Verdict(NamedTuple):
    """What a judge says.

    Attributes:
        error: distance from the exact answer: root mean square for samplers, the largest for solvers.
        ess: effective sample size of one answer, from its squared error; None for solvers.
        fault: why the answers are wrong, or "".
    """

    error: float
    ess: float | None
    fault: str


class Judge(Protocol):
    """Holds the answers of all calls against what is known."""

    def __call__(self, answers: Sequence[Answer]) -> Verdict: ...


@dataclass(frozen=True)
class Sampled:
    """Judges samplers.

    ESS = Σ_i p_i (1 - p_i) / Σ_i (m_i - p_i)², the mean over calls in the denominator: as many independent exact draws
    would have this squared error. It is the same for every library and needs no estimate from autocorrelations.

    Attributes:
        exact: (K,) exact marginals of the classes.
        limit: largest root mean square error of the mean over calls.
        classes: (N,) which sites have the same exact marginals, by number; None: all differ.
    """

    exact: FloatArray
    limit: float
    classes: IntArray | None = None

    def __call__(self, answers: Sequence[Answer]) -> Verdict:
        found = np.stack([self._folded(answer) for answer in answers])
        squares = ((found - self.exact) ** 2).sum(axis=1).mean()
        missed = ((found.mean(axis=0) - self.exact) ** 2).sum()
        error = float(np.sqrt(missed / self.exact.size))
        ess = float((self.exact * (1 - self.exact)).sum() / max(squares, np.finfo(float).tiny))
        copies = 1.0 if self.classes is None else self.classes.size / self.exact.size
        fault = "" if error <= self.limit else f"error {error:.2g} above {self.limit:.2g}"
        if len(found) > 2 and not fault:
            ratio = missed / max(found.var(axis=0, ddof=1).sum() / len(found), np.finfo(float).tiny)
            if ratio > WORST_RATIO:
                fault = f"squared error {ratio:.0f} times what the scatter between calls explains"
        return Verdict(error, ess / copies, fault)

    def _folded(self, answer: Answer) -> FloatArray:
        assert answer.marginals is not None
        if self.classes is None:
            return answer.marginals
        sums = np.bincount(self.classes, answer.marginals, minlength=self.exact.size)
        return np.asarray(sums / np.bincount(self.classes, minlength=self.exact.size))


@dataclass(frozen=True)
class Solved:
    """Judges solvers: every answer within `tolerance`.

    Attributes:
        exact: the answer; its log_z may be None.
        tolerance: of marginals, and of log Z relative to max(1, |log Z|).
    """

    exact: Answer
    tolerance: float

    def __call__(self, answers: Sequence[Answer]) -> Verdict:
        error = 0.0
        for answer in answers:
            if answer.marginals is not None and self.exact.marginals is not None:
                error = max(error, float(np.abs(answer.marginals - self.exact.marginals).max()))
            if answer.log_z is not None and self.exact.log_z is not None:
                error = max(error, abs(answer.log_z - self.exact.log_z) / max(1.0, abs(self.exact.log_z)))
        wrong = not error <= self.tolerance  # NaN is wrong, too
        return Verdict(error, None, f"error {error:.2g} above {self.tolerance:.2g}" if wrong else "")

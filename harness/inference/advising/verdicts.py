"""Whether the winner of a race may be believed, and what to try where it may not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spinbench.inference.advising import judging
from spinbench.inference.advising.judging import Target, View


class Verdict(NamedTuple):
    """Whether it is resolved, why or why not in one sentence, and what to try next."""

    resolved: bool
    sentence: str
    next: str


def verdict(views: Sequence[View], budget: float, target: Target) -> Verdict:
    """Of the first of the views, which are in order."""
    winner = views[0]
    name, longer = winner.candidate.label, f"a budget of {4 * budget:g} s"
    if winner.exact:
        return Verdict(True, f"resolved: {name} is exact here, nothing had to be split", "")
    others = judging.witnesses(views, winner)
    if not winner.believed:
        best = f"{name} comes closest, and says {winner.doubt!r}" if winner.doubt else f"{name} claims no error"
        return Verdict(False, f"unresolved: nobody's verdict is ok; {best}", _more(views, longer))
    if contradicting := [other for other in others if judging.contradict(winner, other)]:
        named = " and ".join(f"{other.candidate.label} by {_apart(winner, other):.2g}" for other in contradicting)
        return Verdict(
            False, f"unresolved: {name} is contradicted by {named}", f"{longer}, which one of them will not survive"
        )
    others = judging.sharp(views, winner, target)
    if not others:
        return Verdict(
            False,
            f"unresolved: {name} believes its answer, but nobody of another kind has one that is believed and as sharp",
            _more(views, longer),
        )
    agreeing = " and ".join(f"{other.candidate.label} ({_apart(winner, other):.1g} apart)" for other in others)
    return Verdict(True, f"resolved: {name} agrees with {agreeing}", "")


def _apart(one: View, other: View) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean((one.values - other.values) ** 2)))


def _more(views: Sequence[View], longer: str) -> str:
    present = {view.candidate.method for view in views}
    if "pt" not in present:
        return f"{longer}, or pt among the candidates, which gets out of wells"
    return f"{longer}; failing that, blocks of a larger size where the model has hard zeros, wmb of a larger ibound"

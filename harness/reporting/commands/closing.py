"""A bracket on log Z while it closes, and what is said of it in the end."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from spinbench.api.bounds import Bound
from spinbench.inference.bracketing.bracket import bracket
from spinbench.inference.bracketing.interval import Interval
from spinbench.reporting.commands.answer import opened


def show(source: str, evidence: str | None, budget: str, **how: Any) -> int:
    """Bracket a model's log Z and print what is known; the exit status is 1 where it is unresolved."""
    with Closing() as closing:
        found = bracket(opened(source, evidence)[0], budget, progress=closing.show, **how)
    for line in lines(found):
        print(line)
    return int(found.verdict == "unresolved")


class Closing:
    """One line on standard error, which follows the bracket on a terminal; elsewhere, one a change of 4 digits."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._last: object = None

    def __enter__(self) -> Closing:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, known: Interval, who: str) -> None:
        """Where it stands, and who is at work."""
        line = f"{known.seconds:6.2f} s  {_sides(known)}  {who}"
        if self._console.is_terminal:
            self._live.update(Text(line, overflow="ellipsis", no_wrap=True), refresh=True)
        elif (news := _sides(known, 4)) != self._last:
            self._last = news
            print(line, file=sys.stderr)


def lines(known: Interval) -> list[str]:
    """The answer, and why the others gave none."""
    refused = (
        [] if known.verdict == "exact" else [f"  no bound from {who}: {why}" for who, why in known.refused.items()]
    )
    first, *others = known.sentences()
    loading = f"code was loaded in {known.loading_seconds:.2g} s before"
    return [f"{known.model}: {first}", *(f"  {line}" for line in (*others, loading)), *refused]


def _sides(known: Interval, digits: int = 6) -> str:
    def side(bound: Bound | None, none: str) -> str:
        return none if bound is None else f"{bound.value:.{digits}g}"

    certain, probable = (
        f"[{side(low, '-inf')}, {side(high, 'inf')}]"
        for low, high in ((known.lower, known.upper), (known.probable_lower, known.probable_upper))
    )
    return certain if not known.delta else f"{certain}  {1 - known.delta:.6g}: {probable}"

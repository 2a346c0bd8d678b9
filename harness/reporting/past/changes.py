"""A page of asv's site: the commits at which accuracy or cost changed, judged by the errors of the numbers.

asv's own page of regressions knows no errors. asv.conf.json names this module under `plugins`, and asv calls what is
derived from its `OutputPublisher` whenever it publishes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.graph import GraphSet
from asv.publishing import OutputPublisher
from asv.repo import Repo

from spinbench.errors import HistoryError
from spinbench.history.changepoints import report
from spinbench.history.recorder import History
from spinbench.reporting import page

PAGE = "changes.html"
# Height of a picture, and width of a commit.
PICTURE_HEIGHT = 20.0
_LINK_ANCHOR = '<li id="nav-li-graphdisplay">'
_LINK = f'<li><a href="{PAGE}">Changes beyond noise</a></li>\n        '


class Changes(OutputPublisher):  # type: ignore[misc]
    """Writes the page and links it."""

    name = "changes"
    button_label = "Changes"
    description = "Commits at which accuracy or cost changed, beyond noise"
    order = 4

    @classmethod
    def publish(
        cls, conf: Config, repo: Repo, benchmarks: Benchmarks, graphs: GraphSet, revisions: Mapping[str, int]
    ) -> None:
        """Called by asv, in the folder of asv.conf.json, after it wrote its own pages."""
        write_changes_page(Path(), Path(conf.html_dir), commits=str(conf.show_commit_url))


def write_changes_page(root: Path, site: Path, commits: str = "#") -> Path:
    """Write the page, and link it from the site's index.

    Args:
        root: the checkout.
        site: folder of the site.
        commits: address to which a commit's hash is added; "#" is none.

    Raises:
        HistoryError: the index has another form than asv's.
    """
    index = site / "index.html"
    whole = index.read_text(encoding="utf-8")
    if whole.count(_LINK_ANCHOR) != 1:
        raise HistoryError(f"asv's page has no place for a link to {PAGE}; pin asv<0.7")
    rows, sentences = _change_rows(root)
    places = [change.step.place for _, change in rows]
    context = {
        "rows": rows,
        "sentences": sentences,
        "choices": {axis: sorted({getattr(place, axis) for place in places}) for axis in ("method", "backend")},
        "commits": commits.removesuffix("#"),
        "points": scale_series,
        "height": PICTURE_HEIGHT,
    }
    path = page.write_page(site / PAGE, "changes.html", context)
    index.write_text(whole.replace(_LINK_ANCHOR, _LINK + _LINK_ANCHOR), encoding="utf-8")
    return path


def _change_rows(root: Path) -> tuple[list[tuple[str, report.LocatedStep]], list[str]]:
    """Of all machines: its name with each change, and a sentence each."""
    rows, sentences = [], []
    for machine in History.open(root).machines():
        try:
            steps = report.find_steps(root, machine=machine)
        except HistoryError as error:
            sentences.append(str(error))
            continue
        sentences.append(report.format_summary(steps))
        rows += [(machine, change) for change in steps.steps]
    return rows, sentences


def scale_series(values: Sequence[float]) -> list[tuple[float, float]]:
    """Points of a picture, x in commits and y from 0 at the top to 1: one a commit with a value, its logarithm."""
    logs = {place: math.log(value) for place, value in enumerate(values) if math.isfinite(value) and value > 0}
    high, spread = max(logs.values(), default=0.0), max(logs.values(), default=0.0) - min(logs.values(), default=0.0)
    return [(place + 0.5, (high - log) / spread if spread else 0.5) for place, log in logs.items()]

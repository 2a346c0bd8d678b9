"""`spinbench report`: one self-contained HTML page, and its pictures and tables as files beside it."""

from __future__ import annotations

import importlib.resources
import math
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup, escape

from spinbench import __version__
from spinbench.errors import SpinbenchError
from spinbench.mathematics.statistics import TARGET_RMSE
from spinbench.measuring import reading
from spinbench.measuring.records import Record
from spinbench.reporting import content, curves, drawing, export, figures, heatmaps, leaderboard, svg
from spinbench.reporting.curves import Quantity
from spinbench.reporting.leaderboard import Row
from spinbench.reporting.profiles.section import section

PAGE = "report.html"
_OPEN_PANELS = 6
"""Models whose charts are unfolded at once; those of others become elements of the page when they are."""
_ROWS = 250
"""Rows of the leaderboard that are shown at once, so that a long one is laid out and sorted quickly."""


@dataclass(frozen=True)
class Written:
    """What `write` wrote.

    Attributes:
        page: the HTML file.
        files: the pictures and tables beside it.
        notes: sentences about what is missing.
    """

    page: Path
    files: tuple[Path, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Panel:
    """The charts of a model, one for each error that its records know."""

    model: str
    charts: tuple[Markup, ...]
    unfolded: bool


def write(
    records: Sequence[Record], folder: Path, *, sources: Sequence[Path] = (), site: Path | None = None
) -> Written:
    """Write the report of some records.

    Args:
        records: one a cell.
        folder: for the page and its files; made if it is missing.
        sources: the sweeps' folders, named on the page.
        site: index of the published history, linked from the page if it exists.

    Raises:
        SpinbenchError: the folder cannot be written.
    """
    with drawing.style():
        return _write(records, folder, sources, site)


def _write(records: Sequence[Record], folder: Path, sources: Sequence[Path], site: Path | None) -> Written:
    board = leaderboard.rows(records)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tables = {
            "leaderboard": export.leaderboard(board),
            "cells": reading.lines(records),
            "trajectories": export.trajectories(records),
        }
        files = [*export.write(tables, folder), *_pictures(board, folder)]
        maps = heatmaps.find(board)
        drawn = []
        for i, found in enumerate(maps):
            figure = heatmaps.picture(found)
            for kind in ("png", "svg"):
                files.append(folder / f"heatmap-{i + 1}.{kind}")
                drawing.save(figure, files[-1])
            label = f"errors over {found.x} and {found.y}"
            drawn.append((figure.get_figwidth(), Markup(svg.inline(figure, f"heat{i}", label, {}))))
        page = folder / PAGE
        link = _link(site, folder) if site is not None and site.is_file() else None
        page.write_text(_render(records, board, drawn, files, sources, link), encoding="utf-8")
    except OSError as error:
        raise SpinbenchError(f"the report in {folder} cannot be written: {error.strerror or error}") from error
    return Written(page, tuple(files), () if export.has_parquet() else (export.NO_PARQUET,))


def environment() -> Environment:
    """Of the templates, with the style and the scripts that every page holds."""
    folder = importlib.resources.files("spinbench.reporting") / "templates"
    texts = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if not file.name.startswith("__")}
    found = Environment(loader=DictLoader(texts), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    found.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    own = {name: text for name, text in texts.items() if not name.endswith(".html")}
    found.globals |= {name.replace(".js", "_js").removesuffix(".css"): Markup(text) for name, text in own.items()}
    found.globals["version"] = __version__
    found.globals["infinity"] = math.inf
    found.filters |= {"short": leaderboard.short, "path": quote, "breakable": _breakable}
    return found


def _breakable(text: str) -> Markup:
    """A label that may be broken behind punctuation."""
    return Markup(re.sub(r"(?<=[/(,_])(?=[^\s;])", "<wbr>", str(escape(text))))


def _pictures(board: Sequence[Row], folder: Path) -> Iterable[Path]:
    names: dict[Quantity, str] = {"marginal_rmse": "accuracy", "log_z_error": "log_z"}
    for quantity, name in names.items():
        for picture in figures.accuracy(board, quantity):
            yield from picture.save(*(folder / f"{name}.{kind}" for kind in ("png", "svg")))


def _render(
    records: Sequence[Record],
    board: Sequence[Row],
    maps: Sequence[tuple[float, Markup]],
    files: Sequence[Path],
    sources: Sequence[Path],
    site: str | None,
) -> str:
    started = [record["started_at"] for record in records]
    looks, more = figures.Looks.of(board), leaderboard.more_titles(board)
    return (
        environment()
        .get_template("report.html")
        .render(
            title=", ".join(dict.fromkeys(path.resolve().name for path in sources)) or "records",
            period=" to ".join(dict.fromkeys(map(_date, (min(started), max(started))))),
            counts=Counter(record["status"] for record in records),
            rows=[content.line(i, row, more) for i, row in enumerate(board)],
            more=more,
            limit=_ROWS,
            across=section(records),
            on_front=content.on_front(board),
            bounds=content.bounds(board),
            unknown=any(row.log_z is not None and row.log_z_error is None for row in board),
            weighed=any(row.peak_mib is not None for row in board),
            many=any(row.replicates > 1 for row in board),
            varied=any(row.variant for row in board),
            choices={
                axis: sorted({record["axes"][axis] for record in records}) for axis in ("model", "method", "backend")
            },
            colours={
                method: (drawing.COLOURS.index(colour), looks.fills[method]) for method, colour in looks.colours.items()
            },
            lines={backend: (_dashes(line), marker) for backend, (line, marker) in looks.lines.items()},
            panels=list(_panels(board, looks)),
            maps=maps,
            problems=content.problems(records),
            notes=leaderboard.notes(records),
            places=content.places(records),
            files=[file.name for file in files],
            target=TARGET_RMSE,
            site=site,
            data=content.data(records, board),
        )
    )


def _panels(board: Sequence[Row], looks: figures.Looks) -> Iterable[Panel]:
    shown = 0
    for place, (model, numbers) in enumerate(content.by_model(board).items()):
        rows = [board[i] for i in numbers]
        names = [f"{svg.PREFIX}{i}" for i in numbers]
        titles = {
            str(i): " ".join(filter(None, [f"{row.method} on {row.backend}", row.variant]))
            for i, row in zip(numbers, rows, strict=True)
        }
        charts = []
        for quantity, title in curves.TITLES.items():
            figure = figures.panel_of(rows, looks, quantity, names)
            if figure is not None:
                drawn = svg.inline(figure, f"p{place}{quantity[0]}", f"{title} over seconds, {model}", titles)
                charts.append(Markup(drawn))
        if charts:
            shown += 1
            yield Panel(model, tuple(charts), unfolded=shown <= _OPEN_PANELS)


def _dashes(line: Any) -> str:
    """Matplotlib's line style as SVG's stroke-dasharray."""
    return {"-": "none", "--": "6 3", ":": "1.5 2.5", "-.": "7 2.5 1.5 2.5"}.get(str(line), "8 2 2 2 2 2")


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def _link(target: Path, folder: Path) -> str:
    return quote(os.path.relpath(target.resolve(), folder.resolve()))

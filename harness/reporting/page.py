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
from spinbench.measuring.record_types import Record
from spinbench.reporting import content, drawing, export, figures, heatmaps, leaderboard, svg
from spinbench.reporting.curves import Quantity
from spinbench.reporting.leaderboard import Row
from spinbench.reporting.looks import Looks
from spinbench.reporting.panels import charts, over_setting, single
from spinbench.reporting.profiles.section import section

PAGE = "report.html"
_KINDS = ("png", "svg", "pdf")
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
class Picture:
    """What stands on the page and in files beside it.

    Attributes:
        inches: its width.
        drawn: as an element of the page.
        note: a sentence below it.
        files: with it.
    """

    inches: float
    drawn: Markup
    note: str
    files: tuple[Path, ...]


def write(
    records: Sequence[Record],
    folder: Path,
    *,
    sources: Sequence[Path] = (),
    site: Path | None = None,
    panels: bool = False,
) -> Written:
    """Write the report of some records.

    Args:
        records: one a cell.
        folder: for the page and its files; made if it is missing.
        sources: the sweeps' folders, named on the page.
        site: index of the published history, linked from the page if it exists.
        panels: whether each model's panels become files of their own, too, which takes as long as all else.

    Raises:
        SpinbenchError: the folder cannot be written.
    """
    with drawing.style():
        board = leaderboard.rows(records)
        alone = _single(board, folder / "panels") if panels else []
        return _write(records, board, folder, alone, (sources, site))


def _write(
    records: Sequence[Record],
    board: Sequence[Row],
    folder: Path,
    alone: Sequence[Path],
    links: tuple[Sequence[Path], Path | None],
) -> Written:
    sources, site = links
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = [*export.write(export.tables(records, board), folder), *_pictures(board, folder)]
        over, maps = list(_over_one(board, folder)), list(_over_two(board, folder))
        files += [*(file for picture in (*over, *maps) for file in picture.files), *alone]
        page = folder / PAGE
        link = _link(site, folder) if site is not None and site.is_file() else None
        names = [file.relative_to(folder).as_posix() for file in files]
        page.write_text(_render(records, board, (over, maps), names, sources, link), encoding="utf-8")
    except OSError as error:
        raise SpinbenchError(f"the report in {folder} cannot be written: {error.strerror or error}") from error
    return Written(page, tuple(files), () if export.has_parquet() else (export.NO_PARQUET,))


def _over_one(board: Sequence[Row], folder: Path) -> Iterable[Picture]:
    for i, found in enumerate(over_setting.find(board)):
        name = re.sub(r"[^A-Za-z0-9]+", "-", found.setting)
        left_out = f"not drawn: {', '.join(found.left_out)}".replace("\n", " ") if found.left_out else ""
        figure = over_setting.picture(found, Looks.of(board))
        label = f"errors over {found.setting}"
        yield _picture(figure, f"over{i}", label, [folder / f"over-{name}.{kind}" for kind in _KINDS], left_out)


def _over_two(board: Sequence[Row], folder: Path) -> Iterable[Picture]:
    for i, found in enumerate(heatmaps.find(board)):
        figure, label = heatmaps.picture(found), f"errors over {found.x} and {found.y}"
        yield _picture(figure, f"heat{i}", label, [folder / f"heatmap-{i + 1}.{kind}" for kind in _KINDS])


def _picture(figure: Any, name: str, label: str, files: Sequence[Path], note: str = "") -> Picture:
    for file in files:
        drawing.save(figure, file)
    return Picture(figure.get_figwidth(), Markup(svg.inline(figure, name, label, {})), note, tuple(files))


def _single(board: Sequence[Row], folder: Path) -> list[Path]:
    looks, models = Looks.of(board), content.by_model(board).values()
    return [
        file
        for place, numbers in enumerate(models)
        for file in single.save([board[i] for i in numbers], looks, folder, place)
    ]


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
    found.filters |= {
        "short": leaderboard.short,
        "path": quote,
        "errors": charts.errors,
        "answers": charts.answers,
        "breakable": _breakable,
        "packed": content.packed,
    }
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
    pictures: tuple[Sequence[Picture], Sequence[Picture]],
    files: Sequence[str],
    sources: Sequence[Path],
    site: str | None,
) -> str:
    started = [record.started_at for record in records]
    looks, more = Looks.of(board), leaderboard.more_titles(board)
    panels = list(charts.panels(board, looks))
    shared, setups = content.setups(board)
    return (
        environment()
        .get_template("report.html")
        .render(
            title=", ".join(dict.fromkeys(path.resolve().name for path in sources)) or "records",
            period=" to ".join(dict.fromkeys(map(_date, (min(started), max(started))))),
            counts=Counter(record.status for record in records),
            rows=[content.line(i, row, more) for i, row in enumerate(board)],
            more=more,
            shared=shared,
            setups=setups,
            limit=_ROWS,
            across=section(records),
            on_front=content.on_front(board),
            bounds=content.bounds(board),
            unknown=any(row.log_z is not None and row.log_z_error is None for row in board),
            weighed=any(row.peak_mib is not None for row in board),
            many=any(row.replicates > 1 for row in board),
            varied=any(row.variant for row in board),
            choices=_choices(records, board),
            colours={
                method: (drawing.COLOURS.index(colour), looks.fills[method]) for method, colour in looks.colours.items()
            },
            lines={backend: (_dashes(line), marker) for backend, (line, marker) in looks.lines.items()},
            panels=panels,
            further=charts.further(board, panels),
            over=pictures[0],
            maps=pictures[1],
            problems=content.problems(records),
            notes=leaderboard.notes(records),
            places=content.places(records),
            files=files,
            has_single=any(file.startswith("panels/") for file in files),
            target=TARGET_RMSE,
            site=site,
            data=content.data(records, board),
        )
    )


def _choices(records: Sequence[Record], board: Sequence[Row]) -> dict[str, list[str]]:
    axes = {axis: sorted({getattr(record.axes, axis) for record in records}) for axis in ("model", "method", "backend")}
    known = {content.verdict(row) for row in board} | {r.status for r in records if r.status == "skipped"}
    return {**axes, "status": [one for one in ("ok", "doubted", "contradicted", "failed", "skipped") if one in known]}


def _dashes(line: Any) -> str:
    """Matplotlib's line style as SVG's stroke-dasharray."""
    return {"-": "none", "--": "6 3", ":": "1.5 2.5", "-.": "7 2.5 1.5 2.5"}.get(str(line), "8 2 2 2 2 2")


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def _link(target: Path, folder: Path) -> str:
    return quote(os.path.relpath(target.resolve(), folder.resolve()))

"""`spinbench report`: one self-contained HTML page, and its pictures and tables as files beside it."""

from __future__ import annotations

import importlib.resources
import math
import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup, escape

from spinbench import __version__
from spinbench.errors import SpinbenchError
from spinbench.mathematics.statistics import TARGET_RMSE
from spinbench.measuring.record_types import Record
from spinbench.reporting import content, drawing, export, figures, leaderboard, over_settings
from spinbench.reporting import panels as model_panels
from spinbench.reporting.drawing import Looks
from spinbench.reporting.leaderboard import Row
from spinbench.reporting.profiles import pictures, tables
from spinbench.reporting.profiles.profile import Profile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = "report.html"
_ROWS = 250
"""Rows of the leaderboard that are shown at once, so that a long one is laid out and sorted quickly."""


BEGIN, END = "<!-- profile -->", "<!-- end of profile -->"
"""What stands between them in a Markdown page that exists is replaced; the rest of it, prose, is kept."""


@dataclass(frozen=True)
class Written:
    """What `write` wrote.

    Attributes:
        page: the HTML file.
        files: the pictures and tables beside it.
    """

    page: Path
    files: tuple[Path, ...]


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
        looks = Looks.from_rows(board)
        alone = []
        if panels:
            for place, rows in enumerate(leaderboard.by_model(board).values()):
                alone += model_panels.save(rows, looks, folder / "panels", place)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            files = export.write(export.tables(records, board), folder)
            for quantity, name in figures.NAMES.items():
                files += figures.save(board, quantity, *(folder / f"{name}.{kind}" for kind in ("png", "svg")))
            over, maps = list(_over_one(board, looks, folder)), list(_over_two(board, folder))
            files += [*(file for picture in (*over, *maps) for file in picture.files), *alone]
            page = folder / PAGE
            page.write_text(
                _render(
                    records,
                    board,
                    looks,
                    title=", ".join(dict.fromkeys(path.resolve().name for path in sources)) or "records",
                    over=over,
                    maps=maps,
                    files=[file.relative_to(folder).as_posix() for file in files],
                    has_single=bool(alone),
                    site=_link(site, folder) if site is not None and site.is_file() else None,
                ),
                encoding="utf-8",
            )
        except OSError as error:
            raise SpinbenchError(f"the report in {folder} cannot be written: {error.strerror or error}") from error
    return Written(page, tuple(files))


def _over_one(board: Sequence[Row], looks: Looks, folder: Path) -> Iterator[Picture]:
    for i, found in enumerate(over_settings.find_curves(board)):
        name = re.sub(r"[^A-Za-z0-9]+", "-", found.setting)
        left_out = f"not drawn: {', '.join(found.left_out)}".replace("\n", " ") if found.left_out else ""
        figure = over_settings.draw_curves(found, looks)
        yield _picture(figure, f"over{i}", f"errors over {found.setting}", folder / f"over-{name}", left_out)


def _over_two(board: Sequence[Row], folder: Path) -> Iterator[Picture]:
    for i, found in enumerate(over_settings.find_heat_maps(board)):
        figure, label = over_settings.draw_heat_map(found), f"errors over {found.x} and {found.y}"
        yield _picture(figure, f"heat{i}", label, folder / f"heatmap-{i + 1}")


def _picture(figure: Figure, name: str, label: str, stem: Path, note: str = "") -> Picture:
    files = drawing.save(figure, *(stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg", "pdf")))
    return Picture(figure.get_figwidth(), drawing.inline(figure, name, label, {}), note, tuple(files))


def write_profile(found: Profile, records: Sequence[Record], path: Path) -> list[Path]:
    """Write a page in Markdown of what is best across models, or its part between the marks, and the pictures beside
    it; returns the pictures.

    Raises:
        SpinbenchError: the page cannot be written, or what stands there has no marks.
    """
    drawn = pictures.save(found.boards, path.with_name(f"{path.stem}.png"))
    heads, classes = tables.best_by_class(found.boards)
    days = sorted(time.strftime("%Y-%m-%d", time.gmtime(record.started_at)) for record in records)
    text = (
        environment()
        .get_template("profile.md")
        .render(
            sentences=tables.sentences(found),
            pictures=drawn,
            heads=heads,
            classes=classes,
            boards=[(tables.title(board), *tables.table_of(board)) for board in found.boards],
            days=dict.fromkeys([days[0], days[-1]]),
            cells=len(records),
            shared=sum(bool(record.oversubscribed) for record in records),
            places=content.places(records),
        )
    )
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else f"# Methods across models\n\n{BEGIN}{END}\n"
        head, begun, rest = before.partition(BEGIN)
        _, ended, tail = rest.partition(END)
        if not (begun and ended):
            raise SpinbenchError(f"{path} is no page of profiles: it lacks the marks {BEGIN} and {END}")
        path.write_text(f"{head}{BEGIN}\n\n{text}{END}{tail}", encoding="utf-8")
    except OSError as error:
        raise SpinbenchError(f"{path} cannot be written: {error.strerror or error}") from error
    return drawn


def environment() -> Environment:
    """Of the templates, with the style and the scripts that every page holds."""
    folder = importlib.resources.files("spinbench.reporting") / "templates"
    texts = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if not file.name.startswith("__")}
    found = Environment(loader=DictLoader(texts), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    found.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    own = {name: text for name, text in texts.items() if name.endswith((".css", ".js"))}
    found.globals |= {name.replace(".js", "_js").removesuffix(".css"): Markup(text) for name, text in own.items()}
    found.globals["version"] = __version__
    found.globals["infinity"] = math.inf
    found.filters |= {"path": quote, "breakable": _breakable, "packed": content.packed, "setup": content.setup}
    found.filters |= {"short": leaderboard.short, "with_error": leaderboard.with_error, "place": leaderboard.place}
    found.filters |= {"is_wrong": leaderboard.is_wrong, "verdict": content.verdict}
    found.filters |= {"errors": model_panels.errors, "answers": model_panels.answers}
    return found


def _breakable(text: str) -> Markup:
    """A label that may be broken behind punctuation."""
    return Markup(re.sub(r"(?<=[/(,_])(?=[^\s;])", "<wbr>", str(escape(text))))


def _render(records: Sequence[Record], board: Sequence[Row], looks: Looks, **parts: Any) -> str:
    started = [record.started_at for record in records]
    panels = list(model_panels.panels(board, looks))
    shared, setups = content.setups(board)
    swatches = {name: (drawing.COLOURS.index(colour), looks.fills[name]) for name, colour in looks.colours.items()}
    return (
        environment()
        .get_template("report.html")
        .render(
            period=" to ".join(dict.fromkeys(map(_date, (min(started), max(started))))),
            counts=Counter(record.status for record in records),
            rows=board,
            more=leaderboard.more_titles(board),
            shared=shared,
            setups=setups,
            limit=_ROWS,
            across=tables.section(records),
            on_front=content.on_front(board),
            bounds=content.bounds(board),
            unknown=any(row.log_z is not None and row.log_z_error is None for row in board),
            weighed=any(row.peak_mib is not None for row in board),
            many=any(row.replicates > 1 for row in board),
            varied=any(row.variant for row in board),
            choices=_choices(records, board),
            colours=swatches,
            lines={backend: (_dashes(line), marker) for backend, (line, marker) in looks.lines.items()},
            panels=panels,
            further=model_panels.further(board, panels),
            problems=content.problems(records),
            notes=leaderboard.notes(records),
            places=content.places(records),
            target=TARGET_RMSE,
            data=content.data(records, board),
            **parts,
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

"""`spinbench report`: one self-contained HTML page, and its pictures and tables as files beside it."""

from __future__ import annotations

import importlib.resources
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from spinbench import __version__, figures, leaderboard
from spinbench.errors import SpinbenchError
from spinbench.leaderboard import Row
from spinbench.metrics import TARGET_RMSE
from spinbench.records import Record
from spinbench.reporting import curves, heatmaps, svg, tabular
from spinbench.reporting.curves import Quantity

PAGE = "report.html"
_OPEN_PANELS = 12
"""Models whose charts are unfolded at once."""


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
    with figures.style():
        return _write(records, folder, sources, site)


def _write(records: Sequence[Record], folder: Path, sources: Sequence[Path], site: Path | None) -> Written:
    board = leaderboard.rows(records)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tables = {
            "leaderboard": tabular.leaderboard(board),
            "cells": tabular.cells(records),
            "trajectories": tabular.trajectories(records),
        }
        files = [*tabular.write(tables, folder), *_pictures(board, folder)]
        maps = heatmaps.find(board)
        drawn = []
        for i, found in enumerate(maps):
            figure = heatmaps.picture(found)
            for kind in ("png", "svg"):
                files.append(folder / f"heatmap-{i + 1}.{kind}")
                figures.save(figure, files[-1])
            label = f"errors over {found.x} and {found.y}"
            drawn.append((label, Markup(svg.inline(figure, f"heat{i}", label, {}))))
        page = folder / PAGE
        link = _link(site, folder) if site is not None and site.is_file() else None
        page.write_text(_render(records, board, drawn, files, sources, link), encoding="utf-8")
    except OSError as error:
        raise SpinbenchError(f"the report in {folder} cannot be written: {error.strerror or error}") from error
    return Written(page, tuple(files), () if tabular.has_parquet() else (tabular.NO_PARQUET,))


def environment() -> Environment:
    """Of the templates, with the style and the scripts that every page holds."""
    folder = importlib.resources.files("spinbench.reporting") / "templates"
    texts = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if not file.name.startswith("__")}
    found = Environment(loader=DictLoader(texts), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    found.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    own = {name: text for name, text in texts.items() if not name.endswith(".html")}
    found.globals |= {name.replace(".js", "_js").removesuffix(".css"): Markup(text) for name, text in own.items()}
    found.globals["version"] = __version__
    found.filters |= {"short": leaderboard.short, "path": quote}
    return found


def _pictures(board: Sequence[Row], folder: Path) -> Iterable[Path]:
    names: dict[Quantity, str] = {"marginal_rmse": "accuracy", "log_z_error": "log_z"}
    for quantity, name in names.items():
        figure = figures.accuracy(board, quantity)
        if figure is not None:
            for kind in ("png", "svg"):
                figures.save(figure, folder / f"{name}.{kind}")
                yield folder / f"{name}.{kind}"


def _render(
    records: Sequence[Record],
    board: Sequence[Row],
    maps: Sequence[tuple[str, Markup]],
    files: Sequence[Path],
    sources: Sequence[Path],
    site: str | None,
) -> str:
    started = [record["started_at"] for record in records]
    looks = figures.Looks.of(board)
    return (
        environment()
        .get_template("report.html")
        .render(
            title=", ".join(dict.fromkeys(path.resolve().name for path in sources)) or "records",
            period=" to ".join(dict.fromkeys(map(_date, (min(started), max(started))))),
            counts=Counter(record["status"] for record in records),
            rows=[_line(i, row) for i, row in enumerate(board)],
            on_front=_on_front(board),
            many=any(row.replicates > 1 for row in board),
            varied=any(row.variant for row in board),
            choices={
                axis: sorted({record["axes"][axis] for record in records}) for axis in ("model", "method", "backend")
            },
            colours={method: figures.COLOURS.index(colour) for method, colour in looks.colours.items()},
            lines={backend: (_dashes(line), marker) for backend, (line, marker) in looks.lines.items()},
            panels=list(_panels(board, looks)),
            maps=maps,
            problems=_problems(records),
            places=_places(records),
            files=[file.name for file in files],
            target=TARGET_RMSE,
            site=site,
            data=_data(records, board),
        )
    )


def _line(number: int, row: Row) -> dict[str, Any]:
    """A row for the template: texts to show and numbers to sort by."""
    return {
        "number": number,
        "row": row,
        "rmse": leaderboard.with_error(row.rmse, row.rmse_se),
        "failed": row.status.startswith("failed"),
    }


def _panels(board: Sequence[Row], looks: figures.Looks) -> Iterable[Panel]:
    shown = 0
    for place, (model, numbers) in enumerate(_by_model(board).items()):
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


def _on_front(board: Sequence[Row]) -> set[int]:
    """Numbers of the rows with a checkpoint on their model's Pareto front."""
    found: set[int] = set()
    for numbers in _by_model(board).values():
        candidates: list[tuple[float, float]] = []
        owners: list[int] = []
        for i in numbers:
            if (curve := curves.curve(board[i].members)) is not None:
                candidates += zip(curve.seconds.tolist(), curve.middle.tolist(), strict=True)
                owners += [i] * len(curve.seconds)
        found |= {owners[i] for i in curves.front(candidates)}
    return found


def _by_model(board: Sequence[Row]) -> dict[str, list[int]]:
    """Numbers of the rows of each model."""
    found: dict[str, list[int]] = {}
    for i, row in enumerate(board):
        found.setdefault(row.model, []).append(i)
    return found


def _problems(records: Iterable[Record]) -> list[dict[str, Any]]:
    found: dict[tuple[str, str, str, str], tuple[dict[str, None], list[int]]] = {}
    for i, record in enumerate(records):
        if record["status"] != "ok":
            axes = record["axes"]
            key = (record["status"], axes["method"], axes["backend"], record["error"] or "no reason given")
        elif "reason" in (record["reference"] or {}):
            key = ("no exact answer", "", "", record["reference"]["reason"])
        else:
            continue
        models, cells = found.setdefault(key, ({}, []))
        models[record["axes"]["model"]] = None
        cells.append(i)
    names = ("status", "method", "backend", "reason")
    return [
        {**dict(zip(names, key, strict=True)), "models": list(models), "cells": cells}
        for key, (models, cells) in sorted(found.items())
    ]


def _places(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Where and with what cells were measured, each combination once, with the number of its cells."""
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        place, git = record["environment"], record["git"]
        commit = (git.get("commit") or "outside git") + (" with uncommitted changes" if git.get("dirty") else "")
        one = {
            "commit": commit,
            "host": place.get("hostname"),
            "processor": place.get("cpu"),
            "cores": place.get("cores"),
            "GPUs": ", ".join(map(str, place.get("gpus") or [])) or None,
            "system": place.get("platform"),
            "Python": place.get("python"),
            "versions": ", ".join(f"{name} {version}" for name, version in place.get("versions", {}).items()) or None,
            "threads": ", ".join(f"{name}={n}" for name, n in place.get("threads", {}).items()) or None,
        }
        found.setdefault(str(one), {"cells": 0, "facts": {k: v for k, v in one.items() if v is not None}})["cells"] += 1
    return sorted(found.values(), key=lambda place: -int(place["cells"]))


def _data(records: Sequence[Record], board: Sequence[Row]) -> dict[str, Any]:
    """What the scripts need: all of the records, environments once each, and which cells are those of a row."""
    shared: dict[str, int] = {}
    environments: list[Mapping[str, Any]] = []
    cells = []
    place_of = {id(record): i for i, record in enumerate(records)}
    for record in records:
        text = repr(record["environment"])
        if text not in shared:
            shared[text] = len(environments)
            environments.append(record["environment"])
        cells.append({**record, "environment": shared[text]})
    return {
        "cells": cells,
        "environments": environments,
        "rows": [[place_of[id(record)] for record in row.members] for row in board],
    }


def _dashes(line: Any) -> str:
    """Matplotlib's line style as SVG's stroke-dasharray."""
    return {"-": "none", "--": "6 3", ":": "1.5 2.5", "-.": "7 2.5 1.5 2.5"}.get(str(line), "8 2 2 2 2 2")


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def _link(target: Path, folder: Path) -> str:
    return quote(os.path.relpath(target.resolve(), folder.resolve()))

"""`spinbench report`: one self-contained HTML page, and its pictures and tables as files beside it."""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import math
import os
import re
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup, escape

from spinbench import __version__
from spinbench.errors import SpinbenchError
from spinbench.mathematics.statistics import TARGET_RMSE
from spinbench.reporting import accuracy_plots, export, leaderboard, model_plots, page_content, plotting, settings_plots
from spinbench.reporting.profiles import rendering

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from spinbench.measuring.record_types import Record
    from spinbench.reporting.leaderboard import Row
    from spinbench.reporting.plotting import PlotStyles
    from spinbench.reporting.profiles.profile import Profile

PAGE = "report.html"
# Largest number of leaderboard rows that are displayed at once: longer tables lay out and sort slowly.
_MAX_VISIBLE_ROWS = 250

# The part of a Markdown page between these marks is replaced; the prose around it is kept.
BEGIN, END = "<!-- profile -->", "<!-- end of profile -->"


@dataclass(frozen=True)
class ReportFiles:
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
        svg: as an element of the page.
        note: a sentence below it.
        files: with it.
    """

    inches: float
    svg: Markup
    note: str
    files: tuple[Path, ...]


def write_report(
    records: Sequence[Record],
    folder: Path,
    *,
    sources: Sequence[Path] = (),
    site: Path | None = None,
    panels: bool = False,
) -> ReportFiles:
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
    with plotting.plot_style():
        board = leaderboard.rows(records)
        styles = plotting.PlotStyles.from_rows(board)
        panel_files = []
        if panels:
            for place, rows in enumerate(leaderboard.rows_by_model(board).values()):
                panel_files += model_plots.save_panels(rows, styles, folder / "panels", place)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            files = export.write_tables(export.report_tables(records, board), folder)
            for quantity, name in accuracy_plots.FILE_NAMES.items():
                files += accuracy_plots.save_error_curves(
                    board, quantity, *(folder / f"{name}.{kind}" for kind in ("png", "svg"))
                )
            curve_pictures, heat_maps = (
                list(_curve_pictures(board, styles, folder)),
                list(_heat_map_pictures(board, folder)),
            )
            files += [*(file for picture in (*curve_pictures, *heat_maps) for file in picture.files), *panel_files]
            page = folder / PAGE
            page.write_text(
                _render_report(
                    records,
                    board,
                    styles,
                    title=", ".join(dict.fromkeys(path.resolve().name for path in sources)) or "records",
                    over=curve_pictures,
                    maps=heat_maps,
                    files=[file.relative_to(folder).as_posix() for file in files],
                    has_single=bool(panel_files),
                    site=_relative_url(site, folder) if site is not None and site.is_file() else None,
                ),
                encoding="utf-8",
            )
        except OSError as error:
            raise SpinbenchError(f"the report in {folder} cannot be written: {error.strerror or error}") from error
    return ReportFiles(page, tuple(files))


def _curve_pictures(board: Sequence[Row], styles: PlotStyles, folder: Path) -> Iterator[Picture]:
    for i, curves in enumerate(settings_plots.find_curves(board)):
        name = re.sub(r"[^A-Za-z0-9]+", "-", curves.setting)
        note = ""
        if curves.undrawn_curves:
            note = f"not drawn: {', '.join(curves.undrawn_curves)}".replace("\n", " ")
        figure = settings_plots.draw_curves(curves, styles)
        yield _save_picture(figure, f"over{i}", f"errors over {curves.setting}", folder / f"over-{name}", note)


def _heat_map_pictures(board: Sequence[Row], folder: Path) -> Iterator[Picture]:
    for i, heat_map in enumerate(settings_plots.find_heat_maps(board)):
        figure, label = settings_plots.draw_heat_map(heat_map), f"errors over {heat_map.x} and {heat_map.y}"
        yield _save_picture(figure, f"heat{i}", label, folder / f"heatmap-{i + 1}")


def _save_picture(figure: Figure, name: str, label: str, stem: Path, note: str = "") -> Picture:
    files = plotting.save_figure(figure, *(stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg", "pdf")))
    return Picture(figure.get_figwidth(), plotting.render_inline_svg(figure, name, label, {}), note, tuple(files))


def write_profile(profile: Profile, records: Sequence[Record], path: Path) -> list[Path]:
    """Write a page in Markdown of what is best across models, or its part between the marks, and the pictures beside
    it; returns the pictures.

    Raises:
        SpinbenchError: the page cannot be written, or what stands there has no marks.
    """
    picture_files = rendering.save_profiles(profile, path.with_name(f"{path.stem}.png"))
    heads, classes = rendering.best_by_class(profile.boards)
    days = sorted(time.strftime("%Y-%m-%d", time.gmtime(record.started_at)) for record in records)
    text = (
        template_environment()
        .get_template("profile.md")
        .render(
            recommendations=profile.recommendations,
            sentences=rendering.summary_sentences(profile),
            pictures=picture_files,
            heads=heads,
            classes=classes,
            boards=[(rendering.board_title(board), *rendering.board_table(board)) for board in profile.boards],
            tables=profile.tables,
            days=dict.fromkeys([days[0], days[-1]]),
            cells=len(records),
            shared=sum(bool(record.oversubscribed) for record in records),
            places=page_content.group_environments(records),
        )
    )
    try:
        previous_text = f"# Methods across models\n\n{BEGIN}{END}\n"
        if path.exists():
            previous_text = path.read_text(encoding="utf-8")
        head, begin_mark, rest = previous_text.partition(BEGIN)
        _, end_mark, tail = rest.partition(END)
        if not (begin_mark and end_mark):
            raise SpinbenchError(f"{path} is no page of profiles: it lacks the marks {BEGIN} and {END}")
        path.write_text(f"{head}{BEGIN}\n\n{text}{END}{tail}", encoding="utf-8")
    except OSError as error:
        raise SpinbenchError(f"{path} cannot be written: {error.strerror or error}") from error
    return picture_files


def template_environment() -> Environment:
    """Of the templates, with the style and the scripts that every page holds."""
    folder = importlib.resources.files("spinbench.reporting") / "templates"
    texts = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if not file.name.startswith("__")}
    templates = Environment(loader=DictLoader(texts), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    templates.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    assets = {name: text for name, text in texts.items() if name.endswith((".css", ".js"))}
    templates.globals |= {
        **{name.replace(".js", "_js").removesuffix(".css"): Markup(text) for name, text in assets.items()},
        "version": __version__,
        "infinity": math.inf,
    }
    templates.filters |= {
        "path": quote,
        "policy": _content_policy,
        "breakable": _breakable_label,
        "packed": page_content.compress_to_base64,
        "setup": page_content.run_setup,
        "short": leaderboard.format_number,
        "with_error": leaderboard.format_with_error,
        "place": leaderboard.rank_label,
        "is_wrong": leaderboard.is_disqualified,
        "verdict": page_content.verdict_word,
        "errors": model_plots.format_rmse_by_seed,
        "answers": model_plots.format_log_z_by_seed,
    }
    return templates


def write_page(path: Path, template: str, context: Mapping[str, object]) -> Path:
    """Write a page of a template into a folder, which is made if it is missing; returns its path.

    Raises:
        SpinbenchError: it cannot be written.
    """
    text = template_environment().get_template(template).render(context)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SpinbenchError(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def _content_policy(scripts: Iterable[str]) -> str:
    """The content security policy of pages: these scripts alone run, and nothing is loaded but pictures beside a page.

    Labels and messages of records come from others; they are escaped, and run nothing where an escape is missing.
    """
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    loaded = f"script-src {allowed}; style-src 'unsafe-inline'; img-src 'self' file: data:"
    return f"default-src 'none'; {loaded}; base-uri 'none'; form-action 'none'"


def _breakable_label(text: str) -> Markup:
    """A label that may be broken behind punctuation."""
    return Markup(re.sub(r"(?<=[/(,_])(?=[^\s;])", "<wbr>", str(escape(text))))


def _render_report(records: Sequence[Record], board: Sequence[Row], styles: PlotStyles, **parts: object) -> str:
    started = [record.started_at for record in records]
    panels = list(model_plots.build_panels(board, styles))
    shared, setups = page_content.common_setup(board)
    swatches = {name: (plotting.COLOURS.index(colour), styles.fills[name]) for name, colour in styles.colours.items()}
    return (
        template_environment()
        .get_template("report.html")
        .render(
            period=" to ".join(dict.fromkeys(map(_format_date, (min(started), max(started))))),
            counts=Counter(record.status for record in records),
            rows=board,
            more=leaderboard.metric_titles(board),
            shared=shared,
            setups=setups,
            limit=_MAX_VISIBLE_ROWS,
            across=rendering.report_section(records),
            on_front=page_content.rows_on_front(board),
            bounds=page_content.log_z_bounds(board),
            unknown=any(row.log_z is not None and row.log_z_error is None for row in board),
            weighed=any(row.peak_mib is not None for row in board),
            many=any(row.replicates > 1 for row in board),
            varied=any(row.variant for row in board),
            choices=_filter_choices(records, board),
            colours=swatches,
            lines={backend: (_svg_dash_array(line), marker) for backend, (line, marker) in styles.lines.items()},
            panels=panels,
            further=model_plots.count_undrawn_models(board, panels),
            problems=page_content.group_failures(records),
            notes=leaderboard.collect_remarks(records),
            places=page_content.group_environments(records),
            target=TARGET_RMSE,
            data=page_content.script_data(records, board),
            **parts,
        )
    )


def _filter_choices(records: Sequence[Record], board: Sequence[Row]) -> dict[str, list[str]]:
    axes = {axis: sorted({getattr(record.axes, axis) for record in records}) for axis in ("model", "method", "backend")}
    verdicts = {page_content.verdict_word(row) for row in board} | {r.status for r in records if r.status == "skipped"}
    return {
        **axes,
        "status": [status for status in ("ok", "doubted", "contradicted", "failed", "skipped") if status in verdicts],
    }


def _svg_dash_array(line: object) -> str:
    """Matplotlib's line style as SVG's stroke-dasharray."""
    return {"-": "none", "--": "6 3", ":": "1.5 2.5", "-.": "7 2.5 1.5 2.5"}.get(str(line), "8 2 2 2 2 2")


def _format_date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def _relative_url(target: Path, folder: Path) -> str:
    return quote(os.path.relpath(target.resolve(), folder.resolve()))

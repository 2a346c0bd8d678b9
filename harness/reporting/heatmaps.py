"""Heat maps over two numeric settings: where they vary, and the picture (lines are errors, columns methods)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spinbench.foundation.trees import flattened
from spinbench.reporting import drawing
from spinbench.reporting.leaderboard import Row, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FloatArray = npt.NDArray[np.float64]

Pick = Callable[[Row], float | None]
QUANTITIES: Mapping[str, Pick] = {
    "RMSE of the marginals": lambda row: row.rmse,
    "|error of log Z|": lambda row: row.log_z_error,
}
_ACROSS = 3
"""Columns beside each other before the next ones go below."""
_MOST_SETTINGS = 8
"""Numeric settings that may vary in one report before pairs of them are no longer looked for."""


_MOST_FIELDS = 600
"""With a number in each of more, a picture takes minutes, megabytes, and nobody reads it."""


@dataclass(frozen=True)
class HeatMap:
    """Errors over two settings.

    Attributes:
        x, y: names of the settings, such as "model.c1".
        xs, ys: their values, increasing.
        columns: what else differs: method, backend, further settings.
        errors: by title of the error, (columns, ys, xs); NaN where there is none.
    """

    x: str
    y: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    columns: tuple[str, ...]
    errors: Mapping[str, FloatArray]


def find(board: Sequence[Row]) -> list[HeatMap]:
    """One heat map for each pair of numeric settings that varies while all else stays the same, but no vast ones."""
    settings = [_settings(row) for row in board]
    values: dict[str, set[float]] = defaultdict(set)
    for one in settings:
        for name, value in one.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                values[name].add(value)
    varied = sorted(name for name, found in values.items() if len(found) > 1)
    if len(varied) > _MOST_SETTINGS:
        return []
    maps = (_map(board, settings, x, y) for x, y in combinations(varied, 2))
    return [found for found in maps if found is not None]


def picture(found: HeatMap) -> Figure:
    """Values printed in the fields; one colour scale an error, logarithmic where all of its values are positive."""
    from matplotlib.colors import LogNorm, Normalize

    shown = [title for title, errors in found.errors.items() if np.isfinite(errors).any()]
    across = min(len(found.columns), _ACROSS)
    blocks = [range(i, min(i + across, len(found.columns))) for i in range(0, len(found.columns), across)]
    width = max(2.2, 0.62 * len(found.xs) + 0.9)
    height = max(1.9, 0.42 * len(found.ys) + 1.0)
    figure = drawing.new_figure(width * across + 1.2, height * len(shown) * len(blocks))
    panels = figure.subplots(len(shown) * len(blocks), across, squeeze=False)
    for line, (title, block) in zip(panels, product(shown, blocks), strict=True):
        errors = found.errors[title]
        known = errors[np.isfinite(errors)]
        scale = (LogNorm if known.min() > 0 else Normalize)(known.min(), known.max())
        for spare in line[len(block) :]:
            spare.set_visible(False)
        for panel, i in zip(line, block, strict=False):
            drawn = panel.pcolormesh(errors[i], norm=scale, cmap="cividis", edgecolors="none")
            _print(panel, errors[i], scale)
            panel.set_xticks(np.arange(len(found.xs)) + 0.5, [f"{x:g}" for x in found.xs])
            panel.set_yticks(np.arange(len(found.ys)) + 0.5, [f"{y:g}" for y in found.ys])
            panel.tick_params(length=0)
            panel.spines[:].set_visible(False)
            panel.set_xlabel(found.x, parse_math=False)
            panel.set_title(found.columns[i], parse_math=False, fontsize=9.5)
        line[0].set_ylabel(found.y, parse_math=False)
        bar = figure.colorbar(drawn, ax=list(line), label=title, aspect=14, pad=0.02)
        if isinstance(scale, LogNorm):
            drawing.mark(bar.ax.yaxis, known.min(), known.max())
    return figure


def _print(panel: Axes, field: FloatArray, scale: Any) -> None:
    for (y, x), value in np.ndenumerate(field):
        if np.isfinite(value):
            colour = "#ffffff" if scale(value) < 0.5 else "#101010"
            panel.text(x + 0.5, y + 0.5, short(value), ha="center", va="center", fontsize=7.5, color=colour)


def _map(board: Sequence[Row], settings: Sequence[Mapping[str, Any]], x: str, y: str) -> HeatMap | None:
    columns: dict[tuple[Any, ...], dict[tuple[float, float], Row]] = defaultdict(dict)
    here = [one for one in settings if x in one and y in one]
    told = {name for one in here for name in one if _follows(here, name, x, y)}
    for row, one in zip(board, settings, strict=True):
        if x in one and y in one:
            rest = (row.method, row.backend, *sorted((k, str(v)) for k, v in one.items() if k not in told))
            columns[rest][one[x], one[y]] = row
    full = {key: cells for key, cells in sorted(columns.items()) if _is_grid(cells)}
    if not full:
        return None
    xs, ys = (tuple(sorted({place[i] for cells in full.values() for place in cells})) for i in (0, 1))
    if len(full) * len(xs) * len(ys) > _MOST_FIELDS:
        return None
    errors = {title: np.full((len(full), len(ys), len(xs)), np.nan) for title in QUANTITIES}
    for column, cells in enumerate(full.values()):
        for (a, b), row in cells.items():
            for title, pick in QUANTITIES.items():
                if (value := pick(row)) is not None:
                    errors[title][column, ys.index(b), xs.index(a)] = value
    if not any(np.isfinite(field).any() for field in errors.values()):
        return None
    return HeatMap(x, y, xs, ys, tuple(names(list(full))), errors)


def _follows(settings: Iterable[Mapping[str, Any]], name: str, x: str, y: str) -> bool:
    """Whether x and y determine a setting, as a model's seed that is chosen by them."""
    values: dict[tuple[float, float], Any] = {}
    return all(values.setdefault((one[x], one[y]), one[name]) == one[name] for one in settings if name in one)


def _is_grid(places: Iterable[tuple[float, float]]) -> bool:
    """Whether each setting varies while the other stays; (1, 1) and (2, 2) alone make no map."""
    xs, ys = zip(*places, strict=True)
    return max(Counter(xs).values()) > 1 and max(Counter(ys).values()) > 1


def names(keys: Sequence[tuple[Any, ...]]) -> list[str]:
    """Method and backend, with those other settings in which columns of the same method and backend differ."""
    found = []
    for method, backend, *rest in keys:
        rivals = [{*other[2:]} for other in keys if other[:2] == (method, backend)]
        differing = [f"{name}={value}" for name, value in rest if any((name, value) not in other for other in rivals)]
        found.append("\n".join([f"{method} on {backend}", *differing]))
    return found


def _settings(row: Row) -> dict[str, Any]:
    return flattened({key: value for key, value in row.members[0].config.items() if key != "seed"})

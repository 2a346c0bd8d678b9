"""`spinbench show` and `spinbench rerun`: a record for people, and its measurement once more."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from spinbench.foundation.trees import flattened
from spinbench.measuring.record_parts import Checkpoint, Metric
from spinbench.measuring.record_types import Record, parse_record
from spinbench.measuring.records import CELL, RecordError, read_record
from spinbench.metrics import registry
from spinbench.reporting.display import cell_name, new_table
from spinbench.reporting.leaderboard import short

PLACES = ("multirun", ".asv/journal")
"""Folders, in the working folder and in the checkout, in which a record is looked for by its key or id."""

_SURROUNDINGS = ("python", "versions", "cpu", "platform")
STYLE: dict[str, Any] = {"title_style": "bold", "show_edge": False}
_FIGURES = ("samples", "burn_in", "log_z", "log_z_se", "log_z_estimates", "ess_min", "ess_median", "r_hat_max")


def find(name: str, roots: Iterable[Path]) -> Path:
    """The file of a record.

    Args:
        name: its path, or the beginning of its key or id.
        roots: folders that may hold `PLACES`.

    Raises:
        RecordError: none or several fit.
    """
    if Path(name).is_file():
        return Path(name)
    fitting = _fitting(name, roots) if name.isalnum() else {}
    if not fitting:
        raise RecordError(
            f"{name} is neither the file of a record nor the beginning of a key or id of one in {' or '.join(PLACES)}"
        )
    if len(fitting) > 1:
        shown = ", ".join(str(path) for path in list(fitting.values())[:4])
        raise RecordError(f"{name} fits {len(fitting)} records ({shown}{', …' * (len(fitting) > 4)}); give a path")
    return next(iter(fitting.values()))


def _fitting(name: str, roots: Iterable[Path]) -> dict[str, Path]:
    """By id, the records whose key or id begins with a name."""
    found: dict[str, Path] = {}
    folders = [root / place for root in dict.fromkeys(root.resolve() for root in roots) for place in PLACES]
    for path in (path for folder in folders for path in sorted(folder.rglob("record-*.json"))):
        try:
            record = read_record(path)
        except RecordError:  # of another schema, or half of a file: not what is looked for
            continue
        if any(text.startswith(name) for text in (record.key, record.id)):
            found.setdefault(record.id, path)
    return found


def describe(record: Record) -> list[RenderableType]:
    """All that a record holds, for a terminal."""
    style = {"ok": "green", "failed": "red"}.get(record.status, "yellow")
    name = cell_name(record.axes, {"seed": record.config["seed"]})
    parts: list[RenderableType] = [Text.assemble((name, "bold"), ": ", (record.status, style))]
    parts += [Text(text, style=how) for text, how in ((record.error, style), (record.traceback, "dim")) if text]
    general = {
        "key": record.key,
        "id": record.id,
        "started": f"{datetime.fromtimestamp(record.started_at, UTC):%Y-%m-%d %H:%M:%S} UTC",
        "duration": f"{record.duration:.3g} s",
        "family": record.family,
        "protocol": record.protocol,
        **flattened({"git": record["git"], "plugins": record.plugins or {}}),
    }
    parts += [_pairs("record", general), _pairs("configuration", flattened(record.config))]
    if record.race:
        parts.append(_pairs("race", flattened(record["race"])))
    if record.metrics:
        parts.append(_metrics(record.metrics))
    if record.result_or_none is not None:
        result = {key: value for key, value in record["result"].items() if key != "trajectory"}
        parts += [_pairs("result", flattened(result)), _trajectory(record.checkpoints)]
    if record["reference"]:
        parts.append(_pairs("exact answer", flattened(record["reference"])))
    return [*parts, _pairs("environment", flattened(record["environment"]))]


@dataclass(frozen=True)
class Replay:
    """A record and the one that measuring it again gave.

    Attributes:
        then, now: the records.
        comparable: whether the figures do not depend on how fast the machine was.
        figures: by name, those that should be equal, then and now.
        changes: what is not as it was: "commit: 1234 then, 5678 now".
    """

    then: Record
    now: Record
    comparable: bool
    figures: Mapping[str, tuple[Any, Any]]
    changes: tuple[str, ...]

    @property
    def exit_status(self) -> int:
        """1 where figures that should be equal are not, or the outcome is another."""
        if self.then.status != self.now.status:
            return 1
        return int(self.comparable and bool(self.differing))

    @property
    def differing(self) -> list[str]:
        """Names of the figures that are not equal bit for bit."""
        return [name for name, (then, now) in self.figures.items() if then != now]

    def verdict(self) -> str:
        """One sentence."""
        before, after = self.then.status, self.now.status
        if before != after:
            return f"not reproduced: the record says {before}, now the cell {_outcome(self.now)}"
        if after != "ok":
            return f"the cell {_outcome(self.now)}, as the record says"
        if not self.comparable:
            return (
                "cannot be compared bit for bit: the budget is in seconds, so the number of samples depends on the "
                f"machine's speed at the time{self._apart()}"
            )
        if not self.differing:
            return f"reproduced: all {len(self.figures)} figures are equal bit for bit"
        names = ", ".join(self.differing)
        return f"not reproduced: {len(self.differing)} of {len(self.figures)} figures differ ({names})"

    def _apart(self) -> str:
        """How far apart the estimates of log Z are, in standard errors of their difference."""
        values, errors = (self.figures.get(name, (None, None)) for name in ("log_z", "log_z_se"))
        if None in (*values, *errors) or not math.hypot(*errors) > 0:
            return ""
        return (
            f"; the estimates of log Z are {abs(values[1] - values[0]) / math.hypot(*errors):.1f} standard errors apart"
        )


def rerun(record: Record, *, time_limit: float | None = None) -> Replay:
    """Measure the cell of a record again, in a process of its own, with the code as it is now.

    Args:
        record: to be compared with.
        time_limit: seconds beyond the budget; None: the default of a sweep.
    """
    from spinbench.measuring.measure import measure_cell

    config = {**{name: record.config[name] for name in CELL}, "family": record.family, "time_limit": time_limit}
    if record.race is not None:
        if record.race.asked is None:
            raise RecordError("the record is of a candidate that gave no answer in its race; nothing can be run again")
        config["budget"] = record.race.asked  # whose seconds all candidates shared
    return compare(record, parse_record(measure_cell(config)))


def compare(then: Record, now: Record) -> Replay:
    """Two records of one cell."""
    seconds = now.config["budget"].get("seconds") is not None
    exact = then.result_or_none is not None and then.result_or_none.log_z_kind == "exact"
    metrics = _compared(then, now)
    old, new = _figures(then, metrics), _figures(now, metrics)
    figures = {name: (old.get(name), new.get(name)) for name in (old | new)}
    return Replay(then, now, exact or not seconds, figures, tuple(_changes(then, now)))


def table(replay: Replay) -> Table:
    """The figures then and now."""
    found = new_table("figures", ("figure", "record", "now", ""), **STYLE)
    for name, (then, now) in replay.figures.items():
        word = Text("equal", style="green") if then == now else Text("differs", style="yellow")
        found.add_row(Text(name), Text(_plain(then)), Text(_plain(now)), word)
    return found


def _figures(record: Record, names: Iterable[str]) -> dict[str, Any]:
    """What a seed determines: no seconds, and nothing that comes from them; `names` are those of metrics."""
    if record.status != "ok":
        return {}
    found = flattened({name: getattr(record.result, name) for name in _FIGURES})
    for name in names:
        metric = record.metric(name)
        both = {f"{name}.value": metric.value, f"{name}.standard_error": metric.standard_error}
        found |= {key: value for key, value in both.items() if value is not None}
    return found


def _compared(then: Record, now: Record) -> list[str]:
    """Spinbench's own metrics of accuracy, and the registered ones that both records have and that are no times."""
    own = [] if then.race else ["marginal_rmse", "log_z_error"]  # a race knows no exact answer
    found = [name for name, metric in registry.working().items() if not metric.timed]
    return own + [name for name in found if name in then.metrics and name in now.metrics]


def _changes(then: Record, now: Record) -> Iterator[str]:
    old, new = (_surroundings(one) for one in (then, now))
    for name in old | new:
        before, after = old.get(name), new.get(name)
        if before != after:
            yield f"{name}: {before or 'none'} then, {after or 'none'} now"


def _surroundings(record: Record) -> dict[str, Any]:
    """The code and the machine, by dotted names."""
    parts = {name: getattr(record.environment, name) for name in _SURROUNDINGS}
    code = {"commit": record.git.commit, "uncommitted changes": record.git.diff}
    return flattened({**code, "plugins": record.plugins or {}, **parts})


def _outcome(record: Record) -> str:
    return "runs" if record.status == "ok" else f"{record.status} ({record.error})"


def _pairs(title: str, content: Mapping[str, Any]) -> Table:
    found = new_table(title, ("name", "value"), **STYLE)
    for name, value in content.items():
        found.add_row(Text(name, style="dim"), Text(_plain(value)))
    return found


def _metrics(metrics: Mapping[str, Metric]) -> Table:
    found = new_table("metrics", ("name", "value", "standard error"), **STYLE)
    for name, metric in metrics.items():
        value = f"none: {metric.failed or 'no reason given'}" if metric.value is None else _plain(metric.value)
        spread = "" if metric.standard_error is None else _plain(metric.standard_error)
        found.add_row(Text(name, style="dim"), Text(value), Text(spread))
    return found


def _trajectory(points: Iterable[Checkpoint]) -> Table:
    found = new_table("accuracy over time", ("seconds", "samples", "marginal RMSE", "log Z", "|log Z error|"), **STYLE)
    for point in points:
        numbers = (point.marginal_rmse, point.log_z, point.log_z_error)
        found.add_row(f"{point.seconds:.3g}", str(point.samples), *map(short, numbers))
    return found


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    return ", ".join(map(_plain, value)) if isinstance(value, list) else str(value)

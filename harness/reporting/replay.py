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

from spinbench.foundation.remarks import format_seconds
from spinbench.foundation.trees import flatten
from spinbench.measuring import record_parts, records
from spinbench.measuring.record_types import Record, parse_record
from spinbench.metrics import registry
from spinbench.reporting import leaderboard, progress_display

# Folders, in the working folder and in the checkout, that are searched for a record by its key or id.
RECORD_FOLDERS = ("multirun", ".asv/journal")
MAX_LISTED_PATHS = 4
_ENVIRONMENT_FIELDS = ("python", "versions", "cpu", "platform")
STYLE: dict[str, Any] = {"title_style": "bold", "show_edge": False}
_RESULT_FIELDS = ("samples", "burn_in", "log_z", "log_z_se", "log_z_estimates", "ess_min", "ess_median", "r_hat_max")


def find_record_file(name: str, roots: Iterable[Path]) -> Path:
    """The file of a record.

    Args:
        name: its path, or the beginning of its key or id.
        roots: folders that may hold `PLACES`.

    Raises:
        RecordError: none or several fit.
    """
    if Path(name).is_file():
        return Path(name)
    if not (name.isalnum() and (matches := _record_files_with_prefix(name, roots))):
        raise records.RecordError(
            f"{name} is neither the file of a record nor the beginning of a key or id of one in "
            + " or ".join(RECORD_FOLDERS)
        )
    if len(matches) > 1:
        paths = [str(path) for path in matches.values()]
        if len(paths) > MAX_LISTED_PATHS:
            paths[MAX_LISTED_PATHS:] = ["…"]
        raise records.RecordError(f"{name} fits {len(matches)} records ({', '.join(paths)}); give a path")
    return next(iter(matches.values()))


def _record_files_with_prefix(name: str, roots: Iterable[Path]) -> dict[str, Path]:
    """By id, the records whose key or id begins with a name."""
    paths_by_id: dict[str, Path] = {}
    folders = [root / place for root in dict.fromkeys(root.resolve() for root in roots) for place in RECORD_FOLDERS]
    for path in (path for folder in folders for path in sorted(folder.rglob("record-*.json"))):
        try:
            record = records.read_record(path)
        except records.RecordError:
            # An unreadable record, or one of another schema, is not the one that is searched for.
            continue
        if any(text.startswith(name) for text in (record.key, record.id)):
            paths_by_id.setdefault(record.id, path)
    return paths_by_id


def render_record(record: Record) -> list[RenderableType]:
    """All that a record holds, for a terminal."""
    style = {"ok": "green", "failed": "red"}.get(record.status, "yellow")
    name = progress_display.cell_name(record.axes, {"seed": record.config["seed"]})
    parts: list[RenderableType] = [Text.assemble((name, "bold"), ": ", (record.status, style))]
    parts += [Text(text, style=how) for text, how in ((record.error, style), (record.traceback, "dim")) if text]
    general = {
        "key": record.key,
        "id": record.id,
        "started": f"{datetime.fromtimestamp(record.started_at, UTC):%Y-%m-%d %H:%M:%S} UTC",
        "duration": format_seconds(record.duration),
        "family": record.family,
        "protocol": record.protocol,
        **flatten({"git": record["git"], "plugins": record.plugins or {}}),
    }
    parts += [_name_value_table("record", general), _name_value_table("configuration", flatten(record.config))]
    if record.race:
        parts.append(_name_value_table("race", flatten(record["race"])))
    if record.metrics:
        parts.append(_metrics_table(record.metrics))
    if record.result_or_none is not None:
        result = {key: value for key, value in record["result"].items() if key != "trajectory"}
        parts += [_name_value_table("result", flatten(result)), _trajectory_table(record.checkpoints)]
    if record["reference"]:
        parts.append(_name_value_table("exact answer", flatten(record["reference"])))
    return [*parts, _name_value_table("environment", flatten(record["environment"]))]


@dataclass(frozen=True)
class Replay:
    """A record and the one that measuring it again gave.

    Attributes:
        original, repeated: the records.
        is_comparable: whether the figures do not depend on how fast the machine was.
        figures: by name, those that should be equal, then and now.
        changes: what is not as it was: "commit: 1234 then, 5678 now".
    """

    original: Record
    repeated: Record
    is_comparable: bool
    figures: Mapping[str, tuple[Any, Any]]
    changes: tuple[str, ...]

    @property
    def exit_status(self) -> int:
        """1 where figures that should be equal are not, or the outcome is another."""
        if self.original.status != self.repeated.status:
            return 1
        return int(self.is_comparable and bool(self.differing_figures))

    @property
    def differing_figures(self) -> list[str]:
        """Names of the figures that are not equal bit for bit."""
        return [name for name, (original, repeated) in self.figures.items() if original != repeated]

    def verdict(self) -> str:
        """One sentence."""
        before, after = self.original.status, self.repeated.status
        if before != after:
            return f"not reproduced: the record says {before}, now the cell {_outcome_phrase(self.repeated)}"
        if after != "ok":
            return f"the cell {_outcome_phrase(self.repeated)}, as the record says"
        if not self.is_comparable:
            return (
                "cannot be compared bit for bit: the budget is in seconds, so the number of samples depends on the "
                f"machine's speed at the time{self._log_z_discrepancy()}"
            )
        if not self.differing_figures:
            return f"reproduced: all {len(self.figures)} figures are equal bit for bit"
        names = ", ".join(self.differing_figures)
        return f"not reproduced: {len(self.differing_figures)} of {len(self.figures)} figures differ ({names})"

    def _log_z_discrepancy(self) -> str:
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

    config = {**{name: record.config[name] for name in records.CELL}, "family": record.family, "time_limit": time_limit}
    if record.race is not None:
        if record.race.asked is None:
            raise records.RecordError(
                "the record is of a candidate that gave no answer in its race; nothing can be run again"
            )
        # The time of the race was shared by all candidates; the last run's own budget is repeated.
        config["budget"] = record.race.asked
    return compare_replay(record, parse_record(measure_cell(config)))


def compare_replay(original: Record, repeated: Record) -> Replay:
    """Two records of one cell."""
    seconds = repeated.config["budget"].get("seconds") is not None
    exact = original.result_or_none is not None and original.result_or_none.log_z_kind == "exact"
    metrics = _comparable_metrics(original, repeated)
    old, new = _deterministic_figures(original, metrics), _deterministic_figures(repeated, metrics)
    figures = {name: (old.get(name), new.get(name)) for name in (old | new)}
    return Replay(original, repeated, exact or not seconds, figures, tuple(_environment_changes(original, repeated)))


def figures_table(replay: Replay) -> Table:
    """The figures then and now."""
    equality = {True: Text("equal", style="green"), False: Text("differs", style="yellow")}
    rows = [
        (Text(name), *map(Text, map(_format_value, pair)), equality[pair[0] == pair[1]])
        for name, pair in replay.figures.items()
    ]
    return progress_display.new_table("figures", ("figure", "record", "now", ""), rows, **STYLE)


def _deterministic_figures(record: Record, metric_names: Iterable[str]) -> dict[str, Any]:
    """What a seed determines: no seconds, and nothing that comes from them; `metric_names` are those of metrics."""
    if record.status != "ok":
        return {}
    figures = flatten({name: getattr(record.result, name) for name in _RESULT_FIELDS})
    for name in metric_names:
        metric = record.metric(name)
        both = {f"{name}.value": metric.value, f"{name}.standard_error": metric.standard_error}
        figures |= {key: value for key, value in both.items() if value is not None}
    return figures


def _comparable_metrics(original: Record, repeated: Record) -> list[str]:
    """Spinbench's own metrics of accuracy, and the registered ones that both records have and that are no times."""
    # Records of a race have no exact answer to compare with.
    accuracy_metrics = [name for name in ("marginal_rmse", "log_z_error") if not original.race]
    untimed_metrics = [name for name, metric in registry.usable_metrics().items() if not metric.timed]
    return accuracy_metrics + [
        name for name in untimed_metrics if name in original.metrics and name in repeated.metrics
    ]


def _environment_changes(original: Record, repeated: Record) -> Iterator[str]:
    old, new = (_environment_facts(record) for record in (original, repeated))
    for name in old | new:
        before, after = old.get(name), new.get(name)
        if before != after:
            yield f"{name}: {before or 'none'} then, {after or 'none'} now"


def _environment_facts(record: Record) -> dict[str, Any]:
    """The code and the machine, by dotted names."""
    parts = {name: getattr(record.environment, name) for name in _ENVIRONMENT_FIELDS}
    code = {"commit": record.git.commit, "uncommitted changes": record.git.diff}
    return flatten({**code, "plugins": record.plugins or {}, **parts})


def _outcome_phrase(record: Record) -> str:
    if record.status == "ok":
        return "runs"
    return f"{record.status} ({record.error})"


def _name_value_table(title: str, content: Mapping[str, Any]) -> Table:
    rows = [(Text(name, style="dim"), Text(_format_value(value))) for name, value in content.items()]
    return progress_display.new_table(title, ("name", "value"), rows, **STYLE)


def _metrics_table(metrics: Mapping[str, record_parts.Metric]) -> Table:
    output = progress_display.new_table("metrics", ("name", "value", "standard error"), **STYLE)
    for name, metric in metrics.items():
        value, spread = f"none: {metric.failed or 'no reason given'}", ""
        if metric.value is not None:
            value = _format_value(metric.value)
        if metric.standard_error is not None:
            spread = _format_value(metric.standard_error)
        output.add_row(Text(name, style="dim"), Text(value), Text(spread))
    return output


def _trajectory_table(points: Iterable[record_parts.Checkpoint]) -> Table:
    columns = ("seconds", "samples", "marginal RMSE", "log Z", "|log Z error|")
    number = leaderboard.format_number
    rows = [
        (f"{p.seconds:.3g}", str(p.samples), number(p.marginal_rmse), number(p.log_z), number(p.log_z_error))
        for p in points
    ]
    return progress_display.new_table("accuracy over time", columns, rows, **STYLE)


def _format_value(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    if isinstance(value, list):
        return ", ".join(map(_format_value, value))
    return str(value)

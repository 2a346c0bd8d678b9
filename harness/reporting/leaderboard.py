"""Records to rows: for each model, methods and backends from the most to the least accurate."""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spinbench.foundation.trees import flattened
from spinbench.measuring import believed
from spinbench.measuring.record_parts import Metric
from spinbench.measuring.record_types import Record
from spinbench.reporting import brackets, ranks
from spinbench.reporting.brackets import Bracket
from spinbench.reporting.ranks import Pooled

R_HAT_LIMIT = 1.05
"""Chains above it have not met (Gelman and others, "Bayesian Data Analysis", give 1.1, Vehtari et al. 2021 1.01)."""
TAKEN = {
    *("method", "backend", "settings", "seeds", "marginal rmse", "log z", "|log z error|", "ess/s", "compile seconds"),
    *("run seconds", "tier", "status", "seconds to 1 % rmse"),
}
"""Headings of columns, in small letters, that stand for something of their own."""


@dataclass(frozen=True)
class Row:
    """A method on a backend with the same settings; replicates are the records of its seeds.

    Attributes:
        model, method, backend: labels.
        variant: the settings in which this row differs from others of the same method, backend and model.
        replicates: how many records it stands for.
        rmse, rmse_se: of the marginals; over replicates the root of the mean square, with its standard error.
        rmse_margin: half-width of its 95 % interval; 0 where nothing is drawn at random.
        log_z_error, ess_per_second, run_seconds: medians over replicates.
        compile_seconds: the same, of those replicates that compiled something, if any did.
        tier: "native" or "generic", and whose kernel ran, unless that is spinbench's or in the backend's label; empty
            where nothing ran.
        status: the verdict, "ok" or what speaks against the numbers, and remarks; or "failed".
        doubted: whether a replicate's verdict is another than ok.
        rank: by the RMSE among the model's rows, whose verdict is ok; None for others.
        shared: whether other rows have the same rank, since the errors differ by less than noise.
        time_to_error: seconds to an RMSE of one per cent, the median over replicates; None if not reached.
        members: the records.
        log_z: in nats, the median over replicates; None where no record has one.
        peak_mib: MiB that the measuring process held at most while it ran, the median over replicates.
        more: the numbers of `spinbench.metrics` by their titles, means over replicates.
    """

    model: str
    method: str
    backend: str
    variant: str
    replicates: int
    rmse: float | None
    rmse_se: float | None
    log_z_error: float | None
    ess_per_second: float | None
    compile_seconds: float | None
    run_seconds: float | None
    tier: str
    status: str
    time_to_error: float | None = None
    members: tuple[Record, ...] = field(default=(), repr=False, compare=False)
    log_z: float | None = None
    doubted: bool = False
    rmse_margin: float = 0.0
    rank: int | None = None
    shared: bool = False
    peak_mib: float | None = None
    more: Mapping[str, Pooled] = field(default_factory=dict, compare=False)


def rows(records: Iterable[Record]) -> list[Row]:
    """One row for each model, method, backend, protocol and content of the model's files; by model, then by accuracy.
    Skipped cells have none.

    Rows whose verdict is not ok come after those whose is: their errors are no merit.
    """
    groups: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    headings = _headings(records := list(records))
    for record in records:
        if record.status != "skipped":
            axes = record.axes
            files = json.dumps(record.files or {}, sort_keys=True)  # one may have changed under its name
            groups[axes.model, axes.method, axes.backend, record.protocol, files].append(record)
    variants = _variants(groups)
    by_model: dict[str, list[Record]] = defaultdict(list)
    for key, group in groups.items():
        by_model[key[0]] += group
    known = {model: brackets.bracket(group) for model, group in by_model.items()}
    found = [_row(group, variants[key], known[key[0]], headings) for key, group in groups.items()]
    ordered = sorted(
        found, key=lambda row: (row.model, row.doubted, row.rmse is None, row.rmse or 0.0, row.method, row.backend)
    )
    return [row for _, same in itertools.groupby(ordered, key=lambda row: row.model) for row in _ranked(list(same))]


def _ranked(board: Sequence[Row]) -> list[Row]:
    """A model's rows, those that are vouched for with their ranks, in their order."""
    known = [(row.rmse, row.rmse_margin) for row in board if row.rmse is not None and not row.doubted]
    places = ranks.ranks(known)  # of the first rows of the board
    count = Counter(places)
    first = [replace(row, rank=rank, shared=count[rank] > 1) for row, rank in zip(board, places, strict=False)]
    return [*sorted(first, key=lambda row: row.rank or 0), *board[len(places) :]]


def place(row: Row) -> str:
    """Its rank, "2=" where others share it; a dash without one."""
    return "–" if row.rank is None else f"{row.rank}{'=' * row.shared}"


def is_wrong(row: Row) -> bool:
    """Whether it failed, or bounds contradict it."""
    return row.status.startswith("failed") or any(flag in row.status for flag in brackets.DISQUALIFYING)


def problems(records: Iterable[Record]) -> list[str]:
    """One line for each reason for which cells failed or were skipped."""
    reasons: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    for record in records:
        if record.status != "ok":
            axes = record.axes
            key = (record.status, axes.method, axes.backend, record.error or "no reason given")
            reasons[key].append(axes.model)
    return [
        f"{status}: {method} on {backend}, {', '.join(dict.fromkeys(models))}: {reason}"
        for (status, method, backend, reason), models in sorted(reasons.items())
    ]


def notes(records: Iterable[Record]) -> list[str]:
    """One line for each kernel that refused, or that is another distribution's and was not asked, and what ran; and
    for each metric of which there is something to say beside its number."""
    found: dict[str, None] = {}
    for record in records:
        result, axes = record.result_or_none, record.axes
        who = f"{axes.method} on {axes.backend}"
        if result is not None:
            found |= dict.fromkeys(f"{who} ran {result.tier}: {note}" for note in result.notes)
        remarks = (metric.remark for metric in record.metrics.values() if metric.remark)
        found |= dict.fromkeys(f"{who}: {remark}" for remark in remarks)
    return sorted(found)


def short(value: float | None) -> str:
    """Three significant digits, without an exponent between a thousandth and a million; "–" of what is no number."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if -4 <= size < 6:
        return f"{value:,.{max(2 - size, 0)}f}".replace(",", " ")
    return f"{value:.1e}".replace("e-0", "e-").replace("e+0", "e")


def with_error(value: float | None, error: float | None) -> str:
    """To two significant digits of the standard error."""
    if value is None or not error or math.isnan(error):
        return short(value)
    if math.isinf(value) or math.isinf(error):
        return f"{short(value)} ± {short(error)}"
    digits = max(1 - math.floor(math.log10(error)), 0)
    if value < 1e-3 or digits > 5:
        return f"{value:.2e} ± {error:.1e}".replace("e-0", "e-")
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def _row(group: Sequence[Record], variant: str, known: Bracket, headings: Mapping[tuple[str, str], str]) -> Row:
    good = [record for record in group if record.status == "ok"]
    axes = group[0].axes

    def median(pick: Callable[[Record], Any]) -> float | None:
        values = [value for record in good if (value := pick(record)) is not None]
        return statistics.median(values) if values else None

    def metric(name: str) -> Callable[[Record], float | None]:
        return lambda record: record.metric(name).value

    rmse = ranks.pooled([record.metric("marginal_rmse") for record in good], _path(good[0]) if good else ())
    per_sample = median(metric("seconds_per_ess"))
    return Row(
        model=axes.model,
        method=axes.method,
        backend=axes.backend,
        variant=variant,
        replicates=len(group),
        rmse=rmse.value,
        rmse_se=rmse.standard_error,
        rmse_margin=rmse.half_width,
        log_z_error=median(metric("log_z_error")),
        ess_per_second=1 / per_sample if per_sample else None,
        compile_seconds=median(_compiling if any(map(_compiling, good)) else _binding),
        run_seconds=median(lambda record: record.result.timing.run),
        tier=_tier(good[0]) if good else "",
        status=_status(group, good, known),
        time_to_error=_reached(group),
        members=tuple(group),
        log_z=median(lambda record: record.result.log_z),
        doubted=any(record.result.status != "ok" for record in good),
        peak_mib=median(_peak_mib),
        more=_more(good, headings),
    )


def _path(record: Record) -> ranks.Path:
    return [(point.samples, point.marginal_rmse) for point in record.checkpoints if point.marginal_rmse is not None]


def more_titles(board: Iterable[Row]) -> list[str]:
    """Of all numbers that are `more`, in order."""
    return sorted({title for row in board for title in row.more})


def _more(good: Sequence[Record], headings: Mapping[tuple[str, str], str]) -> dict[str, Pooled]:
    found: dict[str, list[Metric]] = defaultdict(list)
    for record in good:
        for name, metric in record.metrics.items():
            if metric.title is not None:
                found[headings[name, _heading(metric)]].append(metric)
    return {heading: ranks.averaged(metrics) for heading, metrics in found.items()}


def _headings(records: Iterable[Record]) -> dict[tuple[str, str], str]:
    """Of a metric's name and heading what tells it from those of other names."""
    entries = (entry for record in records for entry in record.metrics.items())
    pairs = {(name, _heading(metric)) for name, metric in entries if metric.title is not None}
    count = Counter(heading for _, heading in pairs)
    return {
        (name, heading): f"{heading} ({name})" if count[heading] > 1 or heading.lower() in TAKEN else heading
        for name, heading in pairs
    }


def _heading(metric: Metric) -> str:
    """The title, with an arrow where higher is better."""
    return f"{metric.title} ↑" if metric.better == "higher" else str(metric.title)


def _tier(record: Record) -> str:
    tier, owner = record.result.tier, (record.result.kernel or "").partition(" ")[0]
    known = owner in ("", "spinbench") or "kernel=" in record.axes.backend
    return tier if known else f"{tier} ({owner})"


def _reached(group: Sequence[Record]) -> float | None:
    """The median of the seconds to the target; a seed that did not reach it takes longer than any that did.

    Nor did one that failed, or whose marginals nobody vouches for: it came near the answer by luck.
    """
    middle = statistics.median(map(believed.seconds, group))
    return middle if math.isfinite(middle) else None


def _compiling(record: Record) -> float | None:
    """Compile seconds in which something was compiled."""
    return _binding(record) if record.result.compilation == "fresh" else None


def _binding(record: Record) -> float:
    return record.result.timing.compile


def _peak_mib(record: Record) -> float | None:
    memory = record.result.memory
    return None if memory is None or memory.peak_bytes is None else memory.peak_bytes / 2**20


def _status(group: Sequence[Record], good: Sequence[Record], known: Bracket) -> str:
    if not good:
        return "failed"
    verdicts = {doubt for record in good for doubt in record.result.status.split(", ") if doubt != "ok"}
    remarks = sorted(verdicts) or ["ok"]
    remarks += [] if len(good) == len(group) else [f"{len(group) - len(good)} failed"]
    flags = {known.flag(record) for record in good}
    remarks += [flag for flag in brackets.FLAGS if flag in flags]
    mixing = max((record.result.r_hat_max or 1.0 for record in good), default=1.0)
    if mixing > R_HAT_LIMIT:
        remarks.append(f"R-hat {mixing:.2f}" if mixing < 100 else "R-hat > 100")
    if any(record.no_reference is not None for record in good):
        remarks.append("no exact answer")
    if any(record.oversubscribed for record in good):
        remarks.append("oversubscribed")
    # compile seconds of a warm process or from a disk cache are no compilation
    kinds = {record.result.compilation for record in good}
    remarks += [kind for kind in ("warm", "cached") if kind in kinds]
    return ", ".join(remarks)


def _variants(groups: Mapping[tuple[str, ...], Sequence[Record]]) -> dict[tuple[str, ...], str]:
    """For each group the settings that tell it from other groups of the same model, method and backend."""
    flat = {
        key: flattened({**{k: v for k, v in group[0].config.items() if k != "seed"}, "files": group[0].files or {}})
        for key, group in groups.items()
    }
    rivals: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for key, settings in flat.items():
        rivals[key[:3]].append(settings)
    found = {}
    for key, settings in flat.items():
        differing = [name for name in settings if any(other.get(name) != settings[name] for other in rivals[key[:3]])]
        found[key] = " ".join(f"{name.removeprefix('method.')}={settings[name]}" for name in differing)
    return found

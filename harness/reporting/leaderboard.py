"""Records to rows: for each model, methods and backends from the most to the least accurate."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from spinbench.foundation.trees import flattened
from spinbench.measuring import trust
from spinbench.measuring.record_parts import Metric
from spinbench.measuring.record_types import Record
from spinbench.reporting import brackets, ranks
from spinbench.reporting.brackets import Bracket
from spinbench.reporting.ranks import Pooled
from spinbench.reporting.variants import labels, settings_of

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

    @property
    def solver(self) -> str:
        """For people."""
        return f"{self.method} on {self.backend}"

    @property
    def title(self) -> str:
        """The same with what tells the row from others."""
        return " ".join(filter(None, [self.solver, self.variant]))


def rows(records: Iterable[Record]) -> list[Row]:
    """One row for each model, method, backend, protocol and content of the model's files; by model, then by accuracy.
    Skipped cells have none.

    Rows whose verdict is not ok come after those whose is: their errors are no merit.
    """
    listed = list(records)
    groups: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    models: dict[str, list[Record]] = defaultdict(list)
    for record in listed:
        if record.status != "skipped":
            axes = record.axes
            files = json.dumps(record.files or {}, sort_keys=True)  # one may have changed under its name
            groups[axes.model, axes.method, axes.backend, record.protocol, files].append(record)
            models[axes.model].append(record)
    settings = [settings_of(group[0], "seed") | flattened({"files": group[0].files or {}}) for group in groups.values()]
    variants = labels([key[:3] for key in groups], settings)
    known = {model: brackets.bracket(group) for model, group in models.items()}
    headings = _headings(listed)
    found = [
        _row(group, variant, known[group[0].axes.model], headings)
        for group, variant in zip(groups.values(), variants, strict=True)
    ]
    found.sort(key=lambda row: (row.model, row.doubted, row.rmse is None, row.rmse or 0.0, row.method, row.backend))
    return [row for board in by_model(found).values() for row in _ranked(list(board.values()))]


def by_model(board: Iterable[Row]) -> dict[str, dict[int, Row]]:
    """The rows of each model, by their numbers."""
    found: dict[str, dict[int, Row]] = {}
    for number, row in enumerate(board):
        found.setdefault(row.model, {})[number] = row
    return found


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
    results = [record.result for record in good]
    compiled = [one.timing.compile for one in results if one.compilation == "fresh"]
    path = (
        [(one.samples, one.marginal_rmse) for one in good[0].checkpoints if one.marginal_rmse is not None]
        if good
        else ()
    )
    rmse = ranks.pooled([record.metric("marginal_rmse") for record in good], path)
    per_sample = _median(record.metric("seconds_per_ess").value for record in good)
    peaks = [one.memory.peak_bytes for one in results if one.memory is not None]
    # a seed that did not reach the target, failed, or came near by luck takes longer than any that did
    reached = statistics.median(map(trust.seconds, group))
    return Row(
        model=group[0].axes.model,
        method=group[0].axes.method,
        backend=group[0].axes.backend,
        variant=variant,
        replicates=len(group),
        rmse=rmse.value,
        rmse_se=rmse.standard_error,
        rmse_margin=rmse.half_width,
        log_z_error=_median(record.metric("log_z_error").value for record in good),
        ess_per_second=1 / per_sample if per_sample else None,
        compile_seconds=_median(compiled if any(compiled) else [one.timing.compile for one in results]),
        run_seconds=_median(one.timing.run for one in results),
        tier=_tier(good[0]) if good else "",
        status=_status(group, good, known),
        time_to_error=reached if math.isfinite(reached) else None,
        members=tuple(group),
        log_z=_median(one.log_z for one in results),
        doubted=any(one.status != "ok" for one in results),
        peak_mib=_median(None if peak is None else peak / 2**20 for peak in peaks),
        more=_more(good, headings),
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


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


def _status(group: Sequence[Record], good: Sequence[Record], known: Bracket) -> str:
    if not good:
        return "failed"
    verdicts = {doubt for record in good for doubt in record.result.status.split(", ") if doubt != "ok"}
    remarks = sorted(verdicts) or ["ok"]
    if len(good) < len(group):
        remarks.append(f"{len(group) - len(good)} failed")
    flags = {known.flag(record) for record in good}
    remarks += [flag for flag in brackets.FLAGS if flag in flags]
    mixing = max(record.result.r_hat_max or 1.0 for record in good)
    if mixing > R_HAT_LIMIT:
        remarks.append(f"R-hat {mixing:.2f}" if mixing < 100 else "R-hat > 100")
    if any(record.no_reference is not None for record in good):
        remarks.append("no exact answer")
    if any(record.oversubscribed for record in good):
        remarks.append("oversubscribed")
    # compile seconds of a warm process or from a disk cache are no compilation
    kinds = {record.result.compilation for record in good}
    return ", ".join([*remarks, *(kind for kind in ("warm", "cached") if kind in kinds)])

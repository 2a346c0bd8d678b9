"""Records to rows: for each model, methods and backends from the most to the least accurate."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from spinbench.foundation.trees import flatten
from spinbench.inference.checks.evidence import LEVELS
from spinbench.measuring import record_parts, trust
from spinbench.measuring.record_types import Record
from spinbench.reporting import brackets, variants

# R-hat above which chains have not converged (Gelman and others, "Bayesian Data Analysis", give 1.1, Vehtari et al.
# 2021 1.01).
R_HAT_LIMIT = 1.05
# Lower-case headings of the leaderboard's own columns: a setting of the same name gets a longer heading.
RESERVED_HEADINGS = {
    *("method", "backend", "settings", "seeds", "marginal rmse", "log z", "|log z error|", "ess/s", "compile seconds"),
    *("run seconds", "tier", "level", "status", "seconds to 1 % rmse"),
}


@dataclass(frozen=True)
class Row:
    """A method on a backend with the same settings; replicates are the records of its seeds.

    Attributes:
        model: the model's name, with parameters that are not at their defaults.
        method: the method's name.
        backend: the backend's name.
        variant: the settings in which this row differs from others of the same method, backend and model.
        replicates: number of seeds, or records, that the row stands for.
        rmse: RMSE of the marginals; over replicates the root of the mean square.
        rmse_se: standard error of `rmse`.
        rmse_margin: half-width of the 95 % interval of `rmse`; 0 where nothing is drawn at random.
        log_z_error: |log Z - exact log Z| in nats, the median over replicates.
        ess_per_second: effective samples of a marginal a second, the median over replicates.
        run_seconds: seconds of the kept samples, the median over replicates.
        compile_seconds: seconds of compiling, the median of those replicates that compiled something, if any did.
        tier: "native" or "generic", and whose kernel ran, unless that is spinbench's or in the backend's label; empty
            where nothing ran.
        status: the verdict, "ok" or what speaks against the numbers, and remarks; or "failed".
        doubted: whether a replicate's verdict is another than ok.
        rank: by the RMSE among the model's rows, whose verdict is ok; None for others.
        shared: whether other rows have the same rank, since the errors differ by less than noise.
        time_to_error: seconds to an RMSE of one per cent, the median over replicates; None if not reached.
        records: the records.
        log_z: log Z in nats, the median over replicates; None where no record has one.
        marginals_level: the replicates' weakest level of evidence of marginals; empty where none has one.
        log_z_level: the same of log Z.
        peak_mib: MiB that the measuring process held at most while it ran, the median over replicates.
        metric_means: the numbers of `spinbench.metrics` by their titles, means over replicates.
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
    records: tuple[Record, ...] = field(default=(), repr=False, compare=False)
    log_z: float | None = None
    doubted: bool = False
    rmse_margin: float = 0.0
    rank: int | None = None
    shared: bool = False
    marginals_level: str = ""
    log_z_level: str = ""
    peak_mib: float | None = None
    metric_means: Mapping[str, variants.ReplicateMean] = field(default_factory=dict, compare=False)

    @property
    def solver(self) -> str:
        """For people."""
        return f"{self.method} on {self.backend}"

    @property
    def level(self) -> str:
        """What its numbers rest on, for people: of marginals and log Z where these differ."""
        levels = dict.fromkeys(filter(None, [self.marginals_level, self.log_z_level]))
        return ", log Z ".join(levels)

    @property
    def title(self) -> str:
        """The same with what tells the row from others."""
        return " ".join(filter(None, [self.solver, self.variant]))


def rows(records: Iterable[Record]) -> list[Row]:
    """One row for each model, method, backend, protocol and content of the model's files; by model, then by accuracy.
    Skipped cells have none.

    Rows whose verdict is not ok come after those whose is: their errors are no merit.
    """
    all_records = list(records)
    groups: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    models: dict[str, list[Record]] = defaultdict(list)
    for record in all_records:
        if record.status != "skipped":
            axes = record.axes
            # A file may have changed without a change of name.
            files = json.dumps(record.files or {}, sort_keys=True)
            groups[axes.model, axes.method, axes.backend, record.protocol, files].append(record)
            models[axes.model].append(record)
    settings = [
        variants.flat_settings(group[0], "seed") | flatten({"files": group[0].files or {}}) for group in groups.values()
    ]
    labels = variants.difference_labels([key[:3] for key in groups], settings)
    brackets_by_model = {model: brackets.log_z_bracket(group) for model, group in models.items()}
    headings = _unique_headings(all_records)
    board_rows = [
        _summarise_seeds(group, variant, brackets_by_model[group[0].axes.model], headings)
        for group, variant in zip(groups.values(), labels, strict=True)
    ]
    board_rows.sort(
        key=lambda row: (row.model, row.doubted, row.rmse is None, row.rmse or 0.0, row.method, row.backend)
    )
    return [row for board in rows_by_model(board_rows).values() for row in _assign_ranks(list(board.values()))]


def rows_by_model(board: Iterable[Row]) -> dict[str, dict[int, Row]]:
    """The rows of each model, by their numbers."""
    rows: dict[str, dict[int, Row]] = {}
    for number, row in enumerate(board):
        rows.setdefault(row.model, {})[number] = row
    return rows


def _assign_ranks(board: Sequence[Row]) -> list[Row]:
    """A model's rows, those that are vouched for with their ranks, in their order."""
    errors = [(row.rmse, row.rmse_margin) for row in board if row.rmse is not None and not row.doubted]
    # Ranks of the first rows, which have no warnings.
    rank_of = variants.rank_values(errors)
    count = Counter(rank_of)
    ordered_rows = [replace(row, rank=rank, shared=count[rank] > 1) for row, rank in zip(board, rank_of, strict=False)]
    return [*sorted(ordered_rows, key=lambda row: row.rank or 0), *board[len(rank_of) :]]


def rank_label(row: Row) -> str:
    """Its rank, "2=" where others share it; a dash without one."""
    if row.rank is None:
        return "–"
    return f"{row.rank}{'=' * row.shared}"


def is_disqualified(row: Row) -> bool:
    """Whether it failed, or bounds contradict it."""
    return row.status.startswith("failed") or any(flag in row.status for flag in brackets.DISQUALIFYING)


def collect_remarks(records: Iterable[Record]) -> list[str]:
    """One line for each kernel that refused, or that is another distribution's and was not asked, and what ran; and
    for each metric of which there is something to say beside its number."""
    sentences: dict[str, None] = {}
    for record in records:
        result, axes = record.result_or_none, record.axes
        solver = f"{axes.method} on {axes.backend}"
        if result is not None:
            sentences |= dict.fromkeys(f"{solver} ran {result.tier}: {note}" for note in result.notes)
        remarks = (metric.remark for metric in record.metrics.values() if metric.remark)
        sentences |= dict.fromkeys(f"{solver}: {remark}" for remark in remarks)
    return sorted(sentences)


def format_number(value: float | None) -> str:
    """Three significant digits, without an exponent between a thousandth and a million; "–" of what is no number."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return str(value).replace("inf", "∞")
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if -4 <= size < 6:
        return f"{value:,.{max(2 - size, 0)}f}".replace(",", " ")
    return f"{value:.1e}".replace("e-0", "e-").replace("e+0", "e")


def format_with_error(value: float | None, error: float | None) -> str:
    """To two significant digits of the standard error."""
    if value is None or not error or math.isnan(error):
        return format_number(value)
    if math.isinf(value) or math.isinf(error):
        return f"{format_number(value)} ± {format_number(error)}"
    digits = max(1 - math.floor(math.log10(error)), 0)
    if abs(value) < 1e-3 or digits > 5:
        return f"{value:.2e} ± {error:.1e}".replace("e-0", "e-")
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def _summarise_seeds(
    group: Sequence[Record], variant: str, bracket: brackets.LogZBracket, headings: Mapping[tuple[str, str], str]
) -> Row:
    successes = [record for record in group if record.status == "ok"]
    results = [record.result for record in successes]
    compiled = [result.timing.compile for result in results if result.compilation == "fresh"]
    if not any(compiled):
        compiled = [result.timing.compile for result in results]
    path: variants.ErrorPath = ()
    if successes:
        path = [
            (result.samples, result.marginal_rmse)
            for result in successes[0].checkpoints
            if result.marginal_rmse is not None
        ]
    rmse = variants.pool_rmse([record.metric("marginal_rmse") for record in successes], path)
    seconds_per_ess = variants.median_of_available(record.metric("seconds_per_ess").value for record in successes)
    peaks = [result.memory.peak_bytes for result in results if result.memory is not None]
    # a seed that missed the target, failed, or came near it by chance counts as slower than all others
    seconds_to_target = statistics.median(map(trust.seconds_to_error_or_inf, group))
    return Row(
        model=group[0].axes.model,
        method=group[0].axes.method,
        backend=group[0].axes.backend,
        variant=variant,
        replicates=len(group),
        rmse=rmse.value,
        rmse_se=rmse.standard_error,
        rmse_margin=rmse.half_width,
        log_z_error=variants.median_of_available(record.metric("log_z_error").value for record in successes),
        ess_per_second=variants.ess_rate(seconds_per_ess),
        compile_seconds=variants.median_of_available(compiled),
        run_seconds=variants.median_of_available(result.timing.run for result in results),
        tier=next(map(_tier_label, successes), ""),
        status=_status_text(group, successes, bracket),
        time_to_error=seconds_to_target if math.isfinite(seconds_to_target) else None,
        records=tuple(group),
        log_z=variants.median_of_available(result.log_z for result in results),
        doubted=any(result.status != "ok" for result in results),
        marginals_level=_weakest_level(results, "marginals"),
        log_z_level=_weakest_level(results, "log_z"),
        peak_mib=variants.median_of_available(peak / 2**20 for peak in peaks if peak is not None),
        metric_means=_average_metrics(successes, headings),
    )


def _weakest_level(results: Iterable[record_parts.Result], quantity: str) -> str:
    """Of all that have one; levels of other versions are the weakest."""
    levels = {level for result in results if (level := (result.levels or {}).get(quantity))}
    places: dict[str, int] = {level: place for place, level in enumerate(LEVELS)}
    return max(sorted(levels), key=lambda level: places.get(level, len(LEVELS)), default="")


def metric_titles(board: Iterable[Row]) -> list[str]:
    """Of all numbers that are `more`, in order."""
    return sorted({title for row in board for title in row.metric_means})


def _average_metrics(
    successes: Sequence[Record], headings: Mapping[tuple[str, str], str]
) -> dict[str, variants.ReplicateMean]:
    metrics_by_heading: dict[str, list[record_parts.Metric]] = defaultdict(list)
    for record in successes:
        for name, metric in record.metrics.items():
            if metric.title and metric.value is not None:
                metrics_by_heading[headings[name, _metric_heading(metric)]].append(metric)
    return {heading: variants.pool_mean(metrics) for heading, metrics in metrics_by_heading.items()}


def _unique_headings(records: Iterable[Record]) -> dict[tuple[str, str], str]:
    """Of a metric's name and heading what tells it from those of other names."""
    entries = (entry for record in records for entry in record.metrics.items())
    pairs = {(name, _metric_heading(metric)) for name, metric in entries if metric.title}
    count = Counter(heading for _, heading in pairs)
    ambiguous = {heading for heading in count if count[heading] > 1 or heading.lower() in RESERVED_HEADINGS}
    names = {(name, heading): f"{heading} ({name})" for name, heading in pairs if heading in ambiguous}
    return {pair: pair[1] for pair in pairs} | names


def _metric_heading(metric: record_parts.Metric) -> str:
    """The title, with an arrow where higher is better."""
    if metric.better == "higher":
        return f"{metric.title} ↑"
    return str(metric.title)


def _tier_label(record: Record) -> str:
    tier, owner = record.result.tier, (record.result.kernel or "").partition(" ")[0]
    if owner in ("", "spinbench") or "kernel=" in record.axes.backend:
        return tier
    return f"{tier} ({owner})"


def _status_text(group: Sequence[Record], successes: Sequence[Record], bracket: brackets.LogZBracket) -> str:
    if not successes:
        return "failed"
    verdicts = {verdict for record in successes for verdict in record.result.status.split(", ") if verdict != "ok"}
    remarks = sorted(verdicts) or ["ok"]
    if len(successes) < len(group):
        remarks.append(f"{len(group) - len(successes)} failed")
    flags = {bracket.flag_record(record) for record in successes}
    remarks += [flag for flag in brackets.FLAGS if flag in flags]
    r_hat = max(record.result.r_hat_max or 1.0 for record in successes)
    if r_hat > R_HAT_LIMIT:
        remarks.append(f"R-hat {r_hat:.2f}" if r_hat < 100 else "R-hat > 100")
    if any(record.no_reference is not None for record in successes):
        remarks.append("no exact answer")
    if any(record.oversubscribed for record in successes):
        remarks.append("oversubscribed")
    # compile seconds of a warm process or from the disk cache are not compile times
    compilations = {record.result.compilation for record in successes}
    return ", ".join([*remarks, *(kind for kind in ("warm", "cached") if kind in compilations)])

"""Table 1 of the DHMC paper from records: errors of the samplers over the test messages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import RenderableType

from spinbench.measuring.record_types import Record
from spinbench.reporting import leaderboard, progress_display, variants

NAME = "skip_chain"
NOTE = (
    "RMSE over messages ± standard error over messages. log Z by the estimator that a method reports (Chib's for "
    "Gibbs), and, from the same draws, by the cross-fitted mirrored estimator and by bridge sampling."
)

HEADINGS = (
    "messages",
    "marginal\nRMSE",
    "log Z RMSE\n(nats)",
    "median\n|log Z error|",
    "log Z RMSE,\nmirrored",
    "log Z RMSE,\nbridge",
    "seconds\na message",
)


def report(records: Sequence[Record], folder: Path) -> Sequence[RenderableType]:
    """One line a sampler: RMSE of the marginals, RMSE and median error of log Z, seconds a message.

    The RMSE of the marginals is the root of the mean over messages of the mean square error over a message's tokens (so
    that long messages count as much as short ones).

    Returns:
        The table and a note, for `spinbench.reporting.summary`.
    """
    good = [record for record in records if record.status == "ok" and record.config["model"]["name"] == NAME]
    if not good:
        return [f"no table: there is no good record of model {NAME}"]
    columns = ("sampler", *HEADINGS)
    table = progress_display.new_table(
        table_title(good), columns, number_columns=HEADINGS, title_style="bold", padding=(0, 0)
    )
    for label, group in variants.group_by_variant(good).items():
        marginal = variants.rms_over_models(group, variants.metric_value("marginal_rmse"))
        log_z = variants.rms_over_models(group, variants.method_log_z_error)
        others = [
            variants.rms_over_models(group, partial(variants.estimator_log_z_error, name))
            for name in ("mirrored", "bridge")
        ]
        table.add_row(
            label,
            str(marginal.models if marginal else 0),
            format_average(marginal),
            format_average(log_z),
            leaderboard.format_number(log_z.median if log_z else None),
            *map(format_average, others),
            leaderboard.format_number(variants.median_over_records(group, variants.metric_value("run_seconds"))),
        )
    return [table, NOTE]


def table_title(records: Sequence[Record]) -> str:
    """It says where the announcements are from."""
    corpora = {record.config["model"].get("corpus") for record in records}
    texts = {name: f"announcements in {name}" for name in sorted(corpora, key=str)}
    if None in texts:
        texts[None] = "SYNTHETIC announcements (written by spinbench)"
    return f"Table 1: skip-chain CRF on {' and '.join(texts.values())}"


def format_average(average: variants.RootMeanSquare | None) -> str:
    """A value with its standard error."""
    if average is None:
        return leaderboard.format_number(None)
    return leaderboard.format_with_error(average.value, average.error)

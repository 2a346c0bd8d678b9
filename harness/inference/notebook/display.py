"""An answer in HTML, as what it says, how far to believe it and what it cost; and as a picture of it over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from spinbench.errors import SpinbenchError
from spinbench.foundation.remarks import format_seconds, plus_minus
from spinbench.mathematics import all_states

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spinbench.inference.advising.advice import Advice
    from spinbench.inference.batch_timings import Checkpoint
    from spinbench.inference.bracketing.interval import Interval
    from spinbench.inference.result import Result

# Variables that are listed.
SHOWN = 10
# Largest number of names below a panel, and their length in characters.
MAX_TICK_LABELS, MAX_TICK_CHARACTERS = 24, 16
# Line style of bounds, by grade.
DASHES = {"exact": "-", "certified": "--", "probable": "-.", "assumed": ":"}


def html(result: Result) -> str:
    """Two tables: of the run, and of the first variables' marginals, or states."""
    return _facts_table(f"{result.method} on {result.backend}, {result.model}", _facts(result)) + _marginals(result)


def advice_html(advice: Advice) -> str:
    """The verdict, the answer, and the candidates that ran."""
    facts = {"verdict": f"{advice.verdict} ({advice.level})", "next": advice.next, "again": advice.python}
    head = _facts_table(f"advice on {advice.target}", ((name, text) for name, text in facts.items() if text))
    ran = [entry for entry in advice.race if entry.runs]
    names = ("candidate", "runs", "seconds", "status", "fate")
    race = {name: [getattr(entry, name) for entry in ran] for name in names} | {
        "seconds": [f"{entry.seconds:.3g}" for entry in ran]
    }
    return head + html(advice.answer) + (_table(race, 0, "") if ran else "")


def interval_html(interval: Interval) -> str:
    """What is known of log Z, line by line."""
    return _facts_table(f"log Z of {interval.model}", (("", line) for line in interval.sentences()))


def _facts_table(title: str, facts: Iterable[tuple[str, str]]) -> str:
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in facts)
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"


def _facts(result: Result) -> Iterator[tuple[str, str]]:
    yield "verdict", result.status
    if result.log_z is not None:
        yield "log Z", f"{result.log_z:.8g}{plus_minus(result.log_z_se)} ({result.log_z_kind})"
    if result.heaviest_weight is not None:
        yield "log weight of the heaviest state", f"{result.heaviest_weight:.8g}"
    for bound in result.bounds:
        delta = f", δ = {bound.delta:g}" if bound.delta else ""
        yield f"{bound.side} bound", f"{bound.value:.8g} ({bound.grade}{delta}, {bound.by})"
    for name, values, worst in (("least ESS", result.ess, np.nanmin), ("greatest R-hat", result.r_hat, np.nanmax)):
        if values is not None and np.isfinite(numbers := all_states.errors_of_all_states(values)).any():
            yield name, f"{worst(numbers):.4g}"
    yield "samples", f"{result.samples} x {result.chains} chains in {format_seconds(result.seconds.run)}"
    for note in result.notes:
        yield "note", note


def _marginals(result: Result) -> str:
    if result.marginals is None:
        return _state(result)
    head: Any = result.marginals[:SHOWN]
    variables, states = all_states.names(head)
    p = all_states.marginals_of_all_states(head)
    spread = [""] * len(p)
    if result.marginals_se is not None:
        errors: Any = result.marginals_se[:SHOWN]
        spread = [plus_minus(error) for error in all_states.errors_of_all_states(errors)]
    cells = [f"{value:.6g}{error}" for value, error in zip(p, spread, strict=True)]
    names = result.source.names
    columns: dict[str, Sequence[object]] = {
        "variable": [names.label(v) for v in variables.tolist()],
        "state": [names.state(v, state) for v, state in zip(variables.tolist(), states.tolist(), strict=True)],
        "marginal": cells,
    }
    return _table(columns, len(result.marginals), "result.to_dataframe()")


def _state(result: Result) -> str:
    if result.heaviest_weight is None:
        return ""
    states = result.source.names.assignment(result.best_state[:SHOWN].tolist())
    return _table(
        {"variable": states.keys(), "heaviest state": states.values()}, len(result.best_state), "result.best_state"
    )


def _table(columns: Mapping[str, Iterable[object]], variables: int, more: str) -> str:
    """Of the first variables, and where the others are told."""
    rows = [columns, *zip(*columns.values(), strict=True)]
    tags = ["th", *["td"] * (len(rows) - 1)]
    texts = [[escape(str(cell)) for cell in row] for row in rows]
    lines = ["".join(f"<{tag}>{text}</{tag}>" for text in row) for tag, row in zip(tags, texts, strict=True)]
    table = "".join(f"<tr>{line}</tr>" for line in lines)
    rest = ""
    if variables > SHOWN:
        rest = f"<p>and {variables - SHOWN} variables more: {more}</p>"
    return f"<table>{table}</table>{rest}"


def panels(result: Result) -> Any:
    """Axes (P,), one for each of what the answer has.

    Raises:
        SpinbenchError: it has neither marginals nor a trajectory.
    """
    from matplotlib import pyplot

    timed = [point for point in result.trajectory if point.estimate.log_z is not None]
    claimed = [point for point in result.trajectory if point.estimate.marginals_se is not None]
    drawing: list[Any] = []
    if result.marginals is not None:
        drawing.append(lambda axes: _draw_marginals(axes, result))
    if timed:
        drawing.append(lambda axes: _draw_log_z(axes, result, timed))
    if len(claimed) > 1:
        drawing.append(lambda axes: _draw_errors(axes, claimed))
    if not drawing:
        raise SpinbenchError(f"{result.method} gives neither marginals nor log Z; there is nothing to draw")
    figure, axes = pyplot.subplots(
        1, len(drawing), figsize=(4.6 * len(drawing), 3.4), layout="constrained", squeeze=False
    )
    for panel, place in zip(drawing, axes[0], strict=True):
        panel(place)
    figure.suptitle(f"{result.method} on {result.backend}, {result.model}: {result.status}")
    return axes[0]


def _draw_marginals(axes: Axes, result: Result) -> None:
    """Of binary variables p(s = 1), of others the probability of each state."""
    values, errors = result.marginals, result.marginals_se
    variables, p, label = np.arange(len(values)), values, "p(s = 1)"
    if not isinstance(values, np.ndarray):
        (variables, _), p = all_states.names(values), all_states.marginals_of_all_states(values)
        label = "p of each state"
        if errors is not None:
            errors = all_states.errors_of_all_states(errors)
    axes.errorbar(variables, p, yerr=errors, fmt=".", markersize=4, elinewidth=1, color="#0072B2")
    axes.set(xlabel="variable", ylabel=label, ylim=(-0.03, 1.03))
    if len(values) <= MAX_TICK_LABELS and result.source.names.labels:
        labels = [_shorten(str(result.source.names.label(v))) for v in range(len(values))]
        axes.set_xticks(range(len(values)), labels, rotation=90 if max(map(len, labels)) > 2 else 0)
    axes.set_title("marginals" if errors is None else "marginals, with what is claimed as their errors")


def _shorten(name: str) -> str:
    """A name below an axis, where a dollar sign would begin a formula."""
    shown = name if len(name) <= MAX_TICK_CHARACTERS else f"{name[: MAX_TICK_CHARACTERS - 1]}…"
    return shown.replace("$", r"\$")


def _draw_log_z(axes: Axes, result: Result, points: Sequence[Checkpoint]) -> None:
    seconds = np.array([point.seconds for point in points])
    values = np.array([point.estimate.log_z for point in points])
    errors = np.array([point.estimate.log_z_se or 0.0 for point in points])
    axes.plot(seconds, values, "o-", markersize=3, color="#0072B2", label=f"log Z ({result.log_z_kind})")
    axes.fill_between(seconds, values - errors, values + errors, alpha=0.25, color="#0072B2", linewidth=0)
    for bound in result.bounds:
        if math.isfinite(bound.value):
            label = f"{bound.grade} {bound.side} bound ({bound.by})"
            axes.axhline(bound.value, linestyle=DASHES[bound.grade], linewidth=1, color="#D55E00", label=label)
    axes.set(xlabel="seconds", ylabel="log Z", title="log Z over time, ± its standard error")
    axes.legend(fontsize=8)


def _draw_errors(axes: Axes, points: Sequence[Checkpoint]) -> None:
    from matplotlib.ticker import NullFormatter

    seconds = [point.seconds for point in points]
    claims = [all_states.errors_of_all_states(point.estimate.marginals_se) for point in points]
    axes.loglog(seconds, [float(np.sqrt(np.mean(claim**2))) for claim in claims], "o-", markersize=3, color="#0072B2")
    # Labels of minor ticks would overlap for short runs.
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set(xlabel="seconds", ylabel="root mean square", title="claimed errors of the marginals")

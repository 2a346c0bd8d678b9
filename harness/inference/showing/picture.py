"""An answer as a picture: marginals with their errors, and log Z or the errors over time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from spinbench.errors import SpinbenchError
from spinbench.inference.marginals import all_states

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spinbench.inference.result import Result

DASHES = {"exact": "-", "certified": "--", "probable": "-.", "assumed": ":"}
"""Lines of bounds, by grade."""


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
        drawing.append(lambda axes: _marginals(axes, result))
    if timed:
        drawing.append(lambda axes: _log_z(axes, result, timed))
    if len(claimed) > 1:
        drawing.append(lambda axes: _errors(axes, claimed))
    if not drawing:
        raise SpinbenchError(f"{result.method} gives neither marginals nor log Z; there is nothing to draw")
    drawn, axes = pyplot.subplots(
        1, len(drawing), figsize=(4.6 * len(drawing), 3.4), layout="constrained", squeeze=False
    )
    for panel, place in zip(drawing, axes[0], strict=True):
        panel(place)
    drawn.suptitle(f"{result.method} on {result.backend}, {result.model}: {result.status}")
    return axes[0]


def _marginals(axes: Axes, result: Result) -> None:
    """Of binary variables p(s = 1), of others the probability of each state."""
    values = result.marginals
    binary = isinstance(values, np.ndarray)
    variables = np.arange(len(values)) if binary else all_states.names(values)[0]
    p = values if binary else all_states.of_marginals(values)
    errors = result.marginals_se
    if errors is not None and not binary:
        errors = all_states.of_errors(errors)
    axes.errorbar(variables, p, yerr=errors, fmt=".", markersize=4, elinewidth=1, color="#0072B2")
    axes.set(xlabel="variable", ylabel="p(s = 1)" if binary else "p of each state", ylim=(-0.03, 1.03))
    axes.set_title("marginals" if errors is None else "marginals, with what is claimed as their errors")


def _log_z(axes: Axes, result: Result, points: list[Any]) -> None:
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


def _errors(axes: Axes, points: list[Any]) -> None:
    from matplotlib.ticker import NullFormatter

    seconds = [point.seconds for point in points]
    claims = [all_states.of_errors(point.estimate.marginals_se) for point in points]
    axes.loglog(seconds, [float(np.sqrt(np.mean(claim**2))) for claim in claims], "o-", markersize=3, color="#0072B2")
    axes.xaxis.set_minor_formatter(NullFormatter())  # whose labels meet where a run is short
    axes.set(xlabel="seconds", ylabel="root mean square", title="claimed errors of the marginals")

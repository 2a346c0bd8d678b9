"""An answer in HTML: what it says, how far to believe it, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from spinbench.inference.marginals import all_states

if TYPE_CHECKING:
    from spinbench.inference.result import Result

SHOWN = 10
"""Variables."""


def html(result: Result) -> str:
    """Two tables: of the run, and of the first variables' marginals, or states."""
    facts = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in _facts(result))
    title = f"{result.method} on {result.backend}, {result.model}"
    return f"<table><caption>{escape(title)}</caption>{facts}</table>{_marginals(result)}"


def _facts(result: Result) -> Iterator[tuple[str, str]]:
    yield "verdict", result.status
    if result.log_z is not None:
        spread = "" if result.log_z_se is None else f" ± {result.log_z_se:.2g}"
        yield "log Z", f"{result.log_z:.8g}{spread} ({result.log_z_kind})"
    if result.heaviest_weight is not None:
        yield "log weight of the heaviest state", f"{result.heaviest_weight:.8g}"
    for bound in result.bounds:
        delta = f", δ = {bound.delta:g}" if bound.delta else ""
        yield f"{bound.side} bound", f"{bound.value:.8g} ({bound.grade}{delta}, {bound.by})"
    for name, values, worst in (("least ESS", result.ess, np.nanmin), ("greatest R-hat", result.r_hat, np.nanmax)):
        if values is not None and np.isfinite(numbers := all_states.of_errors(values)).any():
            yield name, f"{worst(numbers):.4g}"
    yield "samples", f"{result.samples} x {result.chains} chains in {result.seconds.run:.3g} s"
    for note in result.notes:
        yield "note", note


def _marginals(result: Result) -> str:
    if result.marginals is None:
        return _state(result)
    shown: Any = result.marginals[:SHOWN]
    errors: Any = None if result.marginals_se is None else result.marginals_se[:SHOWN]
    variables, states = all_states.names(shown)
    p = all_states.of_marginals(shown)
    spread = [""] * len(p) if errors is None else [f" ± {error:.2g}" for error in all_states.of_errors(errors)]
    rows = "".join(
        f"<tr><td>{v}</td><td>{k}</td><td>{value:.6g}{error}</td></tr>"
        for v, k, value, error in zip(variables, states, p, spread, strict=True)
    )
    more = len(result.marginals) - SHOWN
    rest = f"<p>and {more} variables more: result.to_dataframe()</p>" if more > 0 else ""
    return f"<table><tr><th>variable</th><th>state</th><th>marginal</th></tr>{rows}</table>{rest}"


def _state(result: Result) -> str:
    if result.heaviest_weight is None:
        return ""
    state = result.best_state
    rows = "".join(f"<tr><td>{v}</td><td>{k}</td></tr>" for v, k in enumerate(state[:SHOWN].tolist()))
    more = len(state) - SHOWN
    rest = f"<p>and {more} variables more: result.best_state</p>" if more > 0 else ""
    return f"<table><tr><th>variable</th><th>heaviest state</th></tr>{rows}</table>{rest}"

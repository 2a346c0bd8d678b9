"""`spinbench run`: one model, one method, one answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.text import Text

from spinbench.api import Method
from spinbench.errors import SpinbenchError
from spinbench.inference import registry
from spinbench.inference.kernels import Wish
from spinbench.inference.result import SUFFIXES, Result
from spinbench.inference.runner import run
from spinbench.reporting.commands import method_files
from spinbench.reporting.commands.answer import of_log_z, of_marginals, opened
from spinbench.reporting.display import console, shown

USUAL = ("numba", "numpy", "jax")
"""Backends, as they are tried where none is named."""
SHOWN_STATES = 40
"""Variables whose states are printed."""


def show(
    name: str,
    evidence: str | None,
    *,
    method: str,
    settings: Mapping[str, Any],
    backend: str | None,
    outputs: Sequence[Path],
    **how: Any,
) -> int:
    """Run a method on a model of that name or in that file, print the answer, and write it to files.

    Args:
        name, evidence: of the model.
        method: a registered name, or a file of Python that defines one.
        settings: of the method.
        backend: a registered name; None: the first of `USUAL` that the method runs on.
        outputs: files as `Result.save` writes them.
        how: further arguments of `spinbench.run`.

    Returns:
        The exit status: 0, or 1 where the verdict is not ok or a tolerance was not reached.
    """
    check_outputs(outputs, SUFFIXES)
    made = _method(method, dict(settings))
    model, _ = opened(name, evidence)
    try:
        found = run(model, made, backend or _usual(made, Wish(how.get("tier"), how.get("kernel"))), **how)
    except SystemExit:  # no exit status of a plugin's is an answer
        raise SpinbenchError(f"{made.name} ended the program before it gave an answer") from None
    output = console()
    for line in _sentences(found):
        output.print(Text(line), soft_wrap=True)
    if outputs:
        for path in outputs:
            found.save(path)
            output.print(Text(f"written: {shown(path)}"), soft_wrap=True)
    elif found.marginals is not None:
        output.print(of_marginals(found))
        output.print(Text("--output FILE.csv, .MAR or .PR has all of it"), soft_wrap=True)
    elif found.best_state is not None:
        more = " …" if len(found.best_state) > SHOWN_STATES else ""
        output.print(Text(f"states {' '.join(map(str, found.best_state[:SHOWN_STATES]))}{more}"), soft_wrap=True)
        output.print(Text("--output FILE.MPE has all of it"), soft_wrap=True)
    return int(found.status != "ok" or found.reached is False)


def check_outputs(outputs: Sequence[Path], suffixes: Sequence[str]) -> None:
    """Raises SpinbenchError, before the time is spent, where an answer could not be written to one of these files."""
    for path in outputs:
        if path.suffix.lower() not in [suffix.lower() for suffix in suffixes]:
            raise SpinbenchError(f"--output {path} was given; {', '.join(suffixes)} are the suffixes that are allowed")
        if not path.absolute().parent.is_dir():
            raise SpinbenchError(f"--output {path} was given; there is no such folder")


def _method(name: str, settings: dict[str, Any]) -> Method:
    if name.endswith(method_files.SUFFIX):
        return method_files.made(Path(name), settings)
    return registry.make_method(name, settings)


def _usual(method: Method, wish: Wish) -> str:
    return next((name for name in USUAL if registry.support(method, name, wish).runs), USUAL[0])


def _sentences(found: Result) -> list[str]:
    lines = [f"{found.model}: {found.status}", *of_log_z(found)]
    if found.marginals is None and found.best_log_weight is not None:
        exact = " (exact)" if found.method == "exact" else ""
        lines.append(f"heaviest state: log weight {found.best_log_weight:.8g}{exact}")
    if "hits" in found.diagnostics:
        what = "annealings" if "annealings" in found.diagnostics else "chains"
        ended = f"{found.diagnostics['hits']:.0f} of {found.diagnostics[what]:.0f} {what}"
        lines.append(f"{ended} ended in a state of this weight")
    if found.marginals_se is not None:
        errors = np.asarray(found.columns()["standard_error"])
        lines.append(f"marginals ± {math.sqrt(float((errors**2).mean())):.2g} (root mean square)")
    took = found.seconds
    spent = f"plan {took.plan:.2g} s, compile {took.compile:.2g} s, burn-in {took.burn_in:.2g} s, run {took.run:.2g} s"
    size = f"{found.samples} samples x {found.chains} chains"
    return [*lines, f"by {found.method} on {found.backend}, {size}: {spent}", *found.notes]

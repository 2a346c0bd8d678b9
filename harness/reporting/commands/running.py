"""`spinbench run`: one model, one method, one answer; and how answers are shown."""

from __future__ import annotations

import importlib.util
import math
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.text import Text

from spinbench.api import LogZKind, Method
from spinbench.errors import BrokenPluginError, SpinbenchError
from spinbench.foundation.parameters import assignments
from spinbench.inference import registry, runner
from spinbench.inference.checks.evidence import Evidence
from spinbench.inference.kernels import Wish
from spinbench.inference.result import SUFFIXES, Result
from spinbench.models import Model, load, specs
from spinbench.models.families import FILE
from spinbench.reporting.display import console, new_table, say, shown
from spinbench.reporting.leaderboard import short

USUAL = ("numba", "numpy", "jax")
"""Backends, as they are tried where none is named."""
SHOWN = 20
"""States whose marginals are printed."""
SHOWN_STATES = 40
"""Variables whose states are printed."""


def run(arguments: Namespace) -> int:
    """Run a method, a registered one or one of a file of Python, on a model, print the answer, and write it to files.

    Returns:
        The exit status: 0, or 1 where the verdict is not ok or a tolerance was not reached.
    """
    check_outputs(arguments.output, SUFFIXES)
    method = _make_method(arguments.method, assignments(arguments.set, "--set"))
    model, _ = open_model(arguments.model, arguments.evidence)
    names = ("budget", "chains", "seed", "precision", "device", "until", "target", "tier", "kernel")
    how = {name: getattr(arguments, name) for name in names}
    try:
        backend = arguments.backend or _usual(method, Wish(arguments.tier, arguments.kernel))
        found = runner.run(model, method, backend, **how)
    except SystemExit:  # no exit status of a plugin's is an answer
        raise SpinbenchError(f"{method.name} ended the program before it gave an answer") from None
    for line in _sentences(found):
        say(line)
    for path in arguments.output:
        found.save(path)
        say(f"written: {shown(path)}")
    if not arguments.output and found.marginals is not None:
        print_marginals(found)
    elif not arguments.output and found.best_state is not None:
        more = " …" if len(found.best_state) > SHOWN_STATES else ""
        say(f"states {' '.join(map(str, found.best_state[:SHOWN_STATES]))}{more}")
        say("--output FILE.MPE has all of it")
    return int(found.status != "ok" or found.reached is False)


def open_model(name: str, evidence: str | None) -> tuple[Model, Mapping[str, Any]]:
    """A model, and its configuration in a sweep."""
    if name in specs.names() and name != FILE and evidence is None:
        return specs.build({"name": name}), {"model": name}
    beside = {} if evidence is None else {"model.evidence": str(Path(evidence))}
    return load(name, evidence=evidence), {"model": FILE, "model.path": str(Path(name)), **beside}


def describe_log_z(answer: Result) -> list[str]:
    """Log Z, where there is one, and the tightest bracket of each grade but of the exact one."""
    lines = [] if answer.log_z is None else [_describe_value(answer.log_z, answer.log_z_se, answer.log_z_kind)]
    lines += [f"do not believe it: {doubt}" for doubt in answer.status.split(", ") if doubt.startswith("log Z outside")]
    for grade in dict.fromkeys(bound.grade for bound in answer.bounds if bound.grade != "exact"):
        sides = {bound.side: bound for bound in answer.bounds if bound.grade == grade}
        low, high = (f"{sides[s].value:.8g} ({sides[s].by})" if s in sides else "none" for s in ("lower", "upper"))
        chance = 1 - sum(bound.delta for bound in sides.values())
        lines.append(f"{grade} bracket of log Z: [{low}, {high}]{f', with {100 * chance:.6g} %' if chance < 1 else ''}")
    return lines


def describe_evidence(evidence: Evidence) -> str:
    """The level of a number, how far off it may be, or why it is doubtful."""
    bound = "" if evidence.error_bound is None else f", within {evidence.error_bound:.2g}"
    return f"{evidence.level}{bound}{f' ({evidence.reason})' if evidence.reason else ''}"


def _describe_value(log_z: float, error: float | None, kind: LogZKind) -> str:
    if error is not None and not math.isfinite(error):
        return f"log Z is unresolved; {log_z:.8g} ({kind}) has no error that it could claim"
    return f"log Z = {log_z:.8g}{'' if error is None else f' ± {error:.2g}'} ({kind})"


def print_marginals(answer: Result) -> None:
    """The first marginals, a line for each state."""
    columns = {name.replace("_", " "): values[:SHOWN].tolist() for name, values in answer.columns().items()}
    table = new_table(None, columns, numbers=columns, show_edge=False)
    for line in zip(*columns.values(), strict=True):
        table.add_row(*(Text(str(value) if isinstance(value, int) else short(value)) for value in line))
    console().print(table)
    say("--output FILE.csv, .MAR or .PR has all of it")


def _method_of_file(path: Path, settings: dict[str, Any]) -> Method:
    """The one method that a file defines, with settings; the file is run as a module.

    Raises:
        SpinbenchError: there is no such file, it defines no method or several, or a setting is wrong.
        BrokenPluginError: what the file does raises.
    """
    if not path.is_file():
        raise SpinbenchError(f"method {str(path)!r} was given; there is no such file")
    name = f"_method_of_{path.stem}"  # which hides no module, whatever the file is called
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # the suffix is Python's
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their own module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise BrokenPluginError(f"{path}: {type(error).__name__}: {error}") from error
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Method) and value.__module__ == name
    ]
    if len(found) != 1:
        names = ", ".join(cls.__name__ for cls in found) or "none"
        raise SpinbenchError(f"{path} defines {names}; one method is needed, a class derived from spinbench.api.Method")
    return registry.make_method(found[0], settings)


def check_outputs(outputs: Sequence[Path], suffixes: Sequence[str]) -> None:
    """Raises SpinbenchError, before the time is spent, where an answer could not be written to one of these files."""
    for path in outputs:
        if path.suffix.lower() not in [suffix.lower() for suffix in suffixes]:
            raise SpinbenchError(f"--output {path} was given; {', '.join(suffixes)} are the suffixes that are allowed")
        if not path.absolute().parent.is_dir():
            raise SpinbenchError(f"--output {path} was given; there is no such folder")


def _make_method(name: str, settings: dict[str, Any]) -> Method:
    return _method_of_file(Path(name), settings) if name.endswith(".py") else registry.make_method(name, settings)


def _usual(method: Method, wish: Wish) -> str:
    return next((name for name in USUAL if registry.support(method, name, wish).runs), USUAL[0])


def _sentences(found: Result) -> list[str]:
    lines = [f"{found.model}: {found.status}", *describe_log_z(found)]
    lines += [f"{name.replace('_', ' ')}: {describe_evidence(each)}" for name, each in found.evidence.items()]
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

"""`spinbench run`: one model, one method, one answer."""

from __future__ import annotations

import importlib.util
import math
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np

from spinbench.api import LogZKind, Method
from spinbench.errors import BrokenPluginError, SpinbenchError
from spinbench.foundation import defaults
from spinbench.foundation.atomic import check_outputs
from spinbench.foundation.parameters import assignments
from spinbench.foundation.remarks import format_seconds, plus_minus, printable
from spinbench.inference import kernels, registry, runner
from spinbench.inference.checks.evidence import Evidence
from spinbench.inference.kernels import Wish
from spinbench.inference.result import Result
from spinbench.reporting.commands.json_answers import print_document
from spinbench.reporting.commands.model_io import open_model, print_marginals
from spinbench.reporting.progress_display import print_line, short_path

# Largest number of variables whose states are printed.
MAX_PRINTED_STATES = 40
_QUANTITIES = {"marginals": "marginals", "log_z": "log Z"}


def run(arguments: Namespace) -> int:
    """Run a method, a registered one or one of a file of Python, on a model, print the answer, and write it to files.

    Returns:
        The exit status: 0, or 1 where the verdict is not ok or a tolerance was not reached.
    """
    check_outputs(arguments.output, (".MAR", ".PR", ".MPE", ".csv"))
    method = _make_method(arguments.method, assignments(arguments.set, "--set"))
    model, _ = open_model(arguments.model, arguments.evidence)
    names = ("budget", "chains", "seed", "precision", "device", "until", "target", "tier", "kernel")
    options = {name: getattr(arguments, name) for name in names}
    try:
        backend = arguments.backend or _default_backend(method, Wish(arguments.tier, arguments.kernel))
        answer = runner.run(model, method, backend, **options)
    except SystemExit:
        # A plugin's exit status must not pass for an answer's.
        raise SpinbenchError(f"{method.name} ended the program before it gave an answer") from None
    for line in _result_sentences(answer):
        print_line(line)
    for path in arguments.output:
        answer.save(path)
        print_line(f"written: {short_path(path)}")
    if not arguments.output and answer.marginals is not None:
        print_marginals(answer)
    elif not arguments.output and answer.best_state is not None:
        print_line(_format_best_state(answer))
        print_line("--output FILE.MPE has all of it")
    return print_document(arguments, int(answer.status != "ok" or answer.reached is False), answer)


def describe_log_z(answer: Result) -> list[str]:
    """Log Z, where there is one, and the tightest bracket of each grade but of the exact one."""
    lines = []
    if answer.log_z is not None:
        lines = [_describe_log_z_value(answer.log_z, answer.log_z_se, answer.log_z_kind)]
    lines += [f"do not believe it: {flag}" for flag in answer.status.split(", ") if flag.startswith("log Z outside")]
    for grade in dict.fromkeys(bound.grade for bound in answer.bounds if bound.grade != "exact"):
        sides = {bound.side: bound for bound in answer.bounds if bound.grade == grade}
        texts = {side: f"{bound.value:.8g} ({bound.by})" for side, bound in sides.items()}
        low, high = texts.get("lower", "none"), texts.get("upper", "none")
        chance = 1 - sum(bound.delta for bound in sides.values())
        lines.append(f"{grade} bracket of log Z: [{low}, {high}]{f', with {100 * chance:.6g} %' if chance < 1 else ''}")
    return lines


def describe_evidence(evidence: Evidence) -> str:
    """The level of a number, how far off it may be, or why it is doubtful."""
    bound = ""
    if evidence.error_bound is not None:
        bound = f", within {evidence.error_bound:.2g}"
    return f"{evidence.level}{bound} ({evidence.reason})".removesuffix(" ()")


def _describe_log_z_value(log_z: float, error: float | None, kind: LogZKind) -> str:
    if error is not None and not math.isfinite(error):
        return f"log Z is unresolved; {log_z:.8g} ({kind}) has no error that it could claim"
    return f"log Z = {log_z:.8g}{plus_minus(error)} ({kind})"


def _format_best_state(answer: Result) -> str:
    """The first states, with names where there are some."""
    names, numbers = answer.source.names, answer.best_state[:MAX_PRINTED_STATES].tolist()
    states = list(map(str, numbers))
    if names.labels:
        states = [f"{name}={state}" for name, state in names.assignment(numbers).items()]
    more = " …" if len(answer.best_state) > len(states) else ""
    return printable(f"states {' '.join(states)}{more}")


def _load_method_file(path: Path, settings: dict[str, object]) -> Method:
    """The one method that a file defines, with settings; the file is run as a module.

    Raises:
        SpinbenchError: there is no such file, it defines no method or several, or a setting is wrong.
        BrokenPluginError: what the file does raises.
    """
    if not path.is_file():
        raise SpinbenchError(f"method {str(path)!r} was given; there is no such file")
    # Prefixed, so that no file hides a module of its name.
    name = f"_method_of_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # never None for a .py file
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # dataclasses look up their own module in sys.modules.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise BrokenPluginError(f"{path}: {type(error).__name__}: {error}") from error
    method_classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Method) and value.__module__ == name
    ]
    if len(method_classes) != 1:
        names = ", ".join(cls.__name__ for cls in method_classes) or "none"
        raise SpinbenchError(f"{path} defines {names}; one method is needed, a class derived from spinbench.api.Method")
    return registry.make_method(method_classes[0], settings)


def _make_method(name: str, settings: dict[str, object]) -> Method:
    if name.endswith(".py"):
        return _load_method_file(Path(name), settings)
    return registry.make_method(name, settings)


def _default_backend(method: Method, request: Wish) -> str:
    backends = kernels.backends_by_preference()
    runs = (name for name in backends if registry.support(method, name, request).runs)
    return next(runs, defaults.BACKEND)


def _result_sentences(answer: Result) -> list[str]:
    lines = [f"{answer.model}: {answer.status}", *describe_log_z(answer)]
    lines += [f"{_QUANTITIES[name]}: {describe_evidence(evidence)}" for name, evidence in answer.evidence.items()]
    if answer.marginals is None and answer.best_log_weight is not None:
        exact = {"exact": " (exact)"}.get(answer.method, "")
        lines.append(f"heaviest state: log weight {answer.best_log_weight:.8g}{exact}")
    if "hits" in answer.diagnostics:
        unit = next(unit for unit in ("annealings", "chains") if unit in answer.diagnostics)
        ended = f"{answer.diagnostics['hits']:.0f} of {answer.diagnostics[unit]:.0f} {unit}"
        lines.append(f"{ended} ended in a state of this weight")
    if answer.marginals_se is not None:
        errors = np.asarray(answer.columns()["standard_error"])
        lines.append(f"marginals ± {math.sqrt(float((errors**2).mean())):.2g} (root mean square)")
    timing = answer.seconds
    parts = {"plan": timing.plan, "compile": timing.compile, "burn-in": timing.burn_in, "run": timing.run}
    durations = ", ".join(f"{name} {format_seconds(seconds)}" for name, seconds in parts.items())
    size = f"{answer.samples} samples x {answer.chains} chains"
    return [*lines, f"by {answer.method} on {answer.backend}, {size}: {durations}", *answer.notes]

"""What is wrong with the settings of a sweep: all of it at once, and before anything is measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, get_args

from spinbench.api import Precision
from spinbench.errors import SpinbenchError
from spinbench.foundation import overrides, parameters, remarks
from spinbench.history import axes
from spinbench.inference import budget, kernels, registry
from spinbench.measuring.records import WISHES
from spinbench.models import specs
from spinbench.reporting import summary


class Refusals:
    """Sentences, each of them once."""

    def __init__(self) -> None:
        self._errors: dict[str, SpinbenchError] = {}

    def add(self, error: SpinbenchError) -> None:
        """One more."""
        self._errors.setdefault(str(error), error)

    @contextmanager
    def collect(self) -> Iterator[None]:
        """What is refused within is remembered, and no error yet."""
        try:
            yield
        except SpinbenchError as error:
            self.add(error)

    def raise_if_any(self) -> None:
        """Raise what was refused, if anything was."""
        if len(self._errors) == 1:
            raise next(iter(self._errors.values()))
        if self._errors:
            listed = "; ".join(f"({place}) {sentence}" for place, sentence in enumerate(self._errors, 1))
            raise SpinbenchError(f"{len(self._errors)} settings are wrong: {listed}")


DEVICES = ("cpu", "gpu")
# Keywords of `run` that a cell's backend configuration sets.
_ASKED_OF_A_RUN = ("precision", "device", *WISHES, "start", "checkpoints", "simplify")


def _method(settings: dict[str, Any]) -> None:
    try:
        cls = registry.method_class(settings["name"])
    except SpinbenchError:
        # The method is not installed; its cells report that.
        return
    registry.make_method(cls, {key: value for key, value in settings.items() if key != "name"})


def _model(spec: dict[str, Any]) -> None:
    specs.check_spec(spec)
    # Read once here: otherwise each message would report the missing corpus.
    if spec.get("corpus") is not None:
        from spinbench.papers.relaxation.crf.corpus import read_corpus

        read_corpus(Path(spec["corpus"]))


def _backend(settings: dict[str, Any]) -> None:
    precision = settings.get("precision")
    if precision not in (None, *get_args(Precision)):
        raise SpinbenchError(
            f"backend.precision={precision} was given; {' and '.join(get_args(Precision))} are allowed"
        )
    if settings.get("device") not in DEVICES:
        raise SpinbenchError(
            f"backend.device={overrides.format_value(settings.get('device'))} was given; cpu and gpu are allowed"
        )
    wish = kernels.Wish(*(settings.get(name) for name in WISHES))
    if wish.kernel is not None:
        kernels.check_distribution(wish.kernel)
    _check_names(f"setting of backend {settings['name']}", settings, ["name", *_ASKED_OF_A_RUN])


def _budget(settings: dict[str, Any]) -> None:
    _check_names("setting in budget", settings, [field.name for field in fields(budget.Budget)])
    budget.Budget(**settings)


def _check_names(subject: str, settings: dict[str, object], allowed: list[str]) -> None:
    for key in settings:
        if key not in allowed:
            raise remarks.unknown_name(subject, key, allowed)


def _check_whole(name: str, least: int, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SpinbenchError(f"{name}={value} was given; an integer, {least} or more, is needed")
    if value >= 2**63:
        raise SpinbenchError(f"{name}={value} was given; records and their tables hold integers below 2^63")


def _check_seconds(name: str, value: Any) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 0 < value < math.inf):
        raise SpinbenchError(f"{name}={value} was given; a positive number of seconds, or null, is needed")


def _check_type(name: str, hint: object, needed: str, value: object) -> None:
    try:
        parameters.convert(value, hint)
    except TypeError:
        raise SpinbenchError(f"{name}={overrides.format_value(value)} was given; {needed} is needed") from None


def _check_text(name: str, value: object) -> None:
    _check_type(name, str | None, "a text, in quotes where it could be a number or a list, or null", value)


def _family(name: object) -> None:
    if name not in (allowed := sorted(axes.families())):
        raise remarks.unknown_name("benchmark family", overrides.format_value(name), allowed)


def _git(state: object) -> None:
    if not isinstance(state, Mapping) or any(value is not None for value in state.values()):
        raise SpinbenchError(
            f"git={overrides.format_value(state)} was given; it is the state of the code, which sweeps fill in"
        )


def _report(name: Any) -> None:
    _check_text("report", name)
    if name is not None:
        summary.find_report(name)


# Functions that refuse wrong values of a setting, as far as possible without measuring.
CHECKS: Mapping[str, Callable[[Any], None]] = {
    "model": _model,
    "method": _method,
    "backend": _backend,
    "budget": _budget,
    "chains": partial(_check_whole, "chains", 1),
    "seed": partial(_check_whole, "seed", 0),
    "time_limit": partial(_check_seconds, "time_limit"),
    "mixing": partial(_check_seconds, "mixing"),
    "report": _report,
    "class": partial(_check_text, "class"),
    "family": _family,
    "own_cache": partial(_check_type, "own_cache", bool, "true or false"),
    "sweep_dir": partial(_check_text, "sweep_dir"),
    "git": _git,
}

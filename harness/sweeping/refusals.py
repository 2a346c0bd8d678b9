"""What is wrong with the settings of a sweep: all of it at once, and before anything is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

from spinbench.api import Precision
from spinbench.errors import SpinbenchError
from spinbench.foundation.names import unknown_name
from spinbench.inference import registry
from spinbench.inference.budget import Budget
from spinbench.inference.kernels import Wish
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
    def noted(self) -> Iterator[None]:
        """What is refused within is remembered, and no error yet."""
        try:
            yield
        except SpinbenchError as error:
            self.add(error)

    def told(self) -> None:
        """Raise what was refused, if anything was."""
        if len(self._errors) == 1:
            raise next(iter(self._errors.values()))
        if self._errors:
            listed = "; ".join(f"({place}) {sentence}" for place, sentence in enumerate(self._errors, 1))
            raise SpinbenchError(f"{len(self._errors)} settings are wrong: {listed}")


_ASKED_OF_A_RUN = ("precision", "device", *WISHES, "start", "checkpoints", "simplify")
"""What `run` takes of a cell's backend, as its keywords."""


def _method(settings: dict[str, Any]) -> None:
    try:
        made = registry.method_class(settings["name"])
    except SpinbenchError:  # not installed: its cells say so
        return
    registry.made(made, {key: value for key, value in settings.items() if key != "name"})


def _model(spec: dict[str, Any]) -> None:
    specs.check(spec)
    if spec.get("corpus") is not None:  # else each message would say so
        from spinbench.papers.relaxation.crf.corpus import read_folder

        read_folder(Path(spec["corpus"]))


def _backend(settings: dict[str, Any]) -> None:
    precision = settings.get("precision")
    if precision not in (None, *get_args(Precision)):
        raise SpinbenchError(
            f"backend.precision={precision} was given; {' and '.join(get_args(Precision))} are allowed"
        )
    Wish(*(settings.get(name) for name in WISHES))
    _known(f"setting of backend {settings['name']}", settings, ["name", *_ASKED_OF_A_RUN])


def _budget(settings: dict[str, Any]) -> None:
    _known("setting in budget", settings, [one.name for one in fields(Budget)])
    Budget(**settings)


def _known(what: str, settings: dict[str, Any], allowed: list[str]) -> None:
    for key in settings:
        if key not in allowed:
            raise unknown_name(what, key, allowed)


def _whole(name: str, least: int) -> Callable[[Any], None]:
    def check(value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise SpinbenchError(f"{name}={value} was given; an integer, {least} or more, is needed")

    return check


def _seconds(name: str) -> Callable[[Any], None]:
    def check(value: Any) -> None:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (number and value > 0):
            raise SpinbenchError(f"{name}={value} was given; a positive number of seconds, or null, is needed")

    return check


def _class(value: Any) -> None:
    if value is not None and not isinstance(value, str):
        raise SpinbenchError(f"class={value} was given; a name is needed, class=\"'{value}'\" or null")


def _report(name: str | None) -> None:
    if name is not None:
        summary.find(name)


CHECKS: Mapping[str, Callable[[Any], None]] = {
    "model": _model,
    "method": _method,
    "backend": _backend,
    "budget": _budget,
    "chains": _whole("chains", 1),
    "seed": _whole("seed", 0),
    "time_limit": _seconds("time_limit"),
    "mixing": _seconds("mixing"),
    "report": _report,
    "class": _class,
}
"""What refuses a value, as far as can be told without measuring."""

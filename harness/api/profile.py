"""What the harness asks of a method or a backend beside running it; all of it has defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple


class MethodProfile(NamedTuple):
    """What checks, `spinbench.advise`, other methods' starts and plots ask of a method.

    Attributes:
        single_site: chains change one variable at a time, so that hard zeros may part their states for good. Runs are
            then not believed where a part that no such change leads to weighs more than their errors allow.
        family: how it goes about it, such as "tempering". Methods of one family fail in the same way (all chains at one
            temperature miss the same mode) and cannot confirm each other in `advise`. Empty: a family of its own.
        variants: settings with which a plugin is a candidate of `advise`, once for each; (): where it is named alone.
        starts: backends, the first that runs it being chosen, on which a run's draws may be others' `start=NAME`; with
            its steps of burn-in, times variables. {}: they may not.
        start_settings: settings of that run.
        style: place among the colours and fillings of plots; None: one that follows from its name.
    """

    single_site: bool = False
    family: str = ""
    variants: tuple[Mapping[str, object], ...] = (MappingProxyType({}),)
    starts: Mapping[str, int] = MappingProxyType({})
    start_settings: Mapping[str, object] = MappingProxyType({})
    style: int | None = None


def set_nothing(variables: dict[str, str], device: str) -> None:
    """Leave environment variables as they are."""


class BackendProfile(NamedTuple):
    """What runs without a named backend, records, sweeps and plots ask of a backend. Subclasses do not inherit it.

    Attributes:
        priority: where no backend is named, those of high priority are asked first: built-in ones have 1 to 3.
        packages: distributions whose versions records hold; times are compared where they are the same.
        environment: (variables, device), sets environment variables of a process that measures, on one core.
        compiled: environment variable with the folder of its compiled code; empty: it keeps none.
        compiled_folder: the folder that processes share, where that variable is not set; None: one in the cache.
        before_fork: loads what each of several forked processes would load for itself; None: nothing.
        survives_fork: whether a process in which it has run may be forked.
        style: place among the lines and markers of plots; None: one that follows from its name.
    """

    priority: float = 0.0
    packages: tuple[str, ...] = ()
    environment: Callable[[dict[str, str], str], None] = set_nothing
    compiled: str = ""
    compiled_folder: Callable[[], Path] | None = None
    before_fork: Callable[[], None] | None = None
    survives_fork: bool = True
    style: int | None = None

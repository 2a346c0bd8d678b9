"""What `spinbench.run` is asked for, and every refusal that needs no computing."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from spinbench.api import Method, Precision
from spinbench.api.types import RANDOM_KINDS
from spinbench.errors import BudgetError, SpinbenchError, UnsupportedError
from spinbench.inference import kernels, registry
from spinbench.inference.budget import Budget, Tolerance, check_whole
from spinbench.inference.stored_states.storage import check_file
from spinbench.models import Model
from spinbench.models.possible_states import check_weight_range

TARGETS = ("map",)


@dataclass(frozen=True)
class Options:
    """The keywords of `spinbench.run` but for the method's settings; see there."""

    chains: int
    seed: int
    burn_in: int | None
    precision: Precision
    device: str
    start: np.ndarray | str | None
    checkpoints: int
    tier: Literal["native", "generic"] | None
    kernel: str | None
    simplify: bool
    until: str | None
    keep: int | None
    keep_in: str | Path | None
    target: str | None


@dataclass(frozen=True)
class Request:
    """Of a run, checked.

    Attributes:
        backend, budget: where and for how long the method runs.
        wish: which kernel is asked.
        support: how the pair runs.
        options: as they were given.
        file: in which kept states end.
    """

    model: Model
    method: Method
    backend: str
    budget: Budget
    wish: kernels.Wish
    support: registry.Support
    options: Options
    file: Path | None

    @property
    def who(self) -> str:
        """Method and backend, for messages."""
        return f"{self.method.name} on {self.backend}"

    @property
    def is_sampler(self) -> bool:
        """Whether chains move from state to state, from where they start."""
        return self.method.kind == "sampler"

    @property
    def simplifies(self) -> bool:
        """Whether the method gets the model without what falls away; a user's states are of the model as it is."""
        return self.options.simplify and (self.options.start is None or isinstance(self.options.start, str))


def check_request(
    model: Model,
    method: str | Method,
    backend: str,
    budget: Budget | int | str,
    options: Options,
    settings: dict[str, object],
) -> Request:
    """What is asked for.

    Args:
        model, method, backend, budget, settings: as of `run`.
        options: its other keywords.

    Raises:
        SpinbenchError: what is wrong, in one sentence.
    """
    check_model(model)
    if not model.num_variables:
        raise SpinbenchError(f"{model.name} has no variables; spinbench.exact gives its log Z")
    check_whole("chains", options.chains, 1)
    check_whole("seed", options.seed, 0)
    check_whole("checkpoints", options.checkpoints, 1)
    if options.keep is not None:
        check_whole("keep", options.keep, 1)
    file = None
    if options.keep_in is not None:
        file = check_file(options.keep_in, options.keep)
    if not isinstance(options.simplify, bool):
        raise SpinbenchError(f"simplify={options.simplify!r} was given; true or false is needed")
    if options.precision not in ("float32", "float64"):
        raise SpinbenchError(f"precision={options.precision!r} was given; float32 and float64 are allowed")
    if not isinstance(method, str | Method):
        raise SpinbenchError(f"method={method!r} was given; a name such as 'gibbs' or a Method is needed")
    chosen, wish = registry.make_method(method, settings), kernels.Wish(options.tier, options.kernel)
    support = registry.require_support(chosen, backend, options.precision, wish)
    if chosen.kind != "direct":
        check_weight_range(chosen.name, model, options.precision)
    if options.target is not None:
        _check_target(options.target, chosen, until=options.until, keep=options.keep, start=options.start)
        parsed = Budget.parse(budget)
    else:
        parsed = _parse_budget(budget, options, chosen)
    if parsed.cpu and options.device != "cpu":
        raise BudgetError(f"a budget of {parsed} was given; device={options.device} takes wall-clock or samples")
    return Request(model, chosen, backend, parsed, wish, support, options, file)


def check_model(model: object) -> None:
    """Raises SpinbenchError unless it is a model; of a path, it says what reads it."""
    if not isinstance(model, Model):
        hint = ""
        if isinstance(model, str | Path):
            hint = f"; spinbench.load({model!r}) reads one"
        raise SpinbenchError(f"model={model!r} was given; a PairwiseModel or a FactorGraph is needed{hint}")


def _check_target(target: str, method: Method, **options: object) -> None:
    """Whether a heaviest state is what is asked for, of a method that finds one.

    Args:
        target: of `run`.
        method: that was asked.
        options: options that are of no use then, as given.

    Raises:
        SpinbenchError: another target, or an option that would change nothing.
        UnsupportedError: the method does not look for states.
    """
    if target not in TARGETS:
        raise SpinbenchError(f"target={target!r} was given; 'map' is allowed, or none for marginals and log Z")
    if not method.heaviest:
        raise UnsupportedError(f"target='map' was given; {', '.join(_finders())} find it, and {method.name} does not")
    if useless := [name for name, value in options.items() if value is not None]:
        raise SpinbenchError(
            f"{', '.join(useless)} was given with target='map', where it would change nothing; leave it out"
        )


def _finders() -> list[str]:
    """Names of the methods that find heaviest states; of plugins those that can be loaded."""
    finders = []
    for name in registry.names("methods"):
        with contextlib.suppress(SpinbenchError):
            if registry.method_class(name).heaviest:
                finders.append(name)
    return finders


def _parse_budget(budget_option: Budget | int | str, options: Options, method: Method) -> Budget:
    budget = Budget.parse(budget_option, options.burn_in)
    if options.until is not None:
        budget = dataclasses.replace(budget, until=Tolerance.parse(options.until))
    if budget.until is not None and method.kind not in RANDOM_KINDS:
        raise UnsupportedError(
            f"until='{budget.until}' was given; {method.name} makes no draws whose errors could fall"
        )
    if method.kind == "iteration":
        return dataclasses.replace(budget, burn_in=0)
    return budget

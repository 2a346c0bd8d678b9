"""Methods: inference algorithms as pure functions over any backend's arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple

from spinbench.api.estimate import Estimate
from spinbench.api.old_members import add_old_members, translate_members
from spinbench.api.profile import MethodProfile
from spinbench.api.types import Array, Key, MethodKind, ModelForm, Reduction, State, StateT, Tables, TablesT

if TYPE_CHECKING:
    from spinbench.api.backend import Backend
    from spinbench.api.kernel import Engine
    from spinbench.api.trace import Trace
    from spinbench.models import Model


def _keep(key: Key, tables: Tables, state: State) -> State:
    raise AssertionError("replaced in Program.__post_init__")


def _nothing_to_see(key: Key, tables: Tables, state: State) -> Mapping[str, Array]:
    return {}


def _no_slope(tables: Tables, state: State) -> Mapping[str, Array]:
    return {}


def _no_adaptation(tables: Tables, state: State, last: bool) -> State:
    return state


@dataclass(frozen=True)
class Program(Generic[TablesT, StateT]):
    """A method's algorithm in pure functions over a backend's arrays; all chains advance together, on the last axis.

    A `step` or `warm` with a parameter named `index` also gets the step's number, 1, 2, … from the start of
    burn-in, as a keyword: `step(key, tables, state, index=index)`.

    Attributes:
        init: (key, tables, start) -> state; `start` is an (N, C) array in the backend's real type: of 0 and 1 or, where
            `Method.model_form` is not "pairwise", of each variable's states 0 … K - 1. If `start` holds exact draws of
            p(s), the state must be an exact draw of the chain's target, unless `Conformance.burn_in_first`.
        step: (key, tables, state) -> state, one sample.
        observe: (tables, state) -> {name: array}; one entry for each of the method's `reductions`.
        warm: like `step`, during burn-in: it may adapt settings held in the state. By default `step`.
        adapt: (tables, state, last) -> state, called at the ends of the burn-in's windows (after 1/8, 1/4 and
            1/2 of it, and with last=True at its end, after which settings stay frozen).
        look: (key, tables, state) -> {name: (C,) array}, what is worth more than a step to find out: called at a few
            steps, evenly spaced (`Trace.looks`). It leaves the chains as they are.
        temper: (key, tables, state, beta) -> state, one sweep that leaves p*^β as it is; at beta = 0 it makes
            independent draws. None: the program knows no temperatures.
        slope: (tables, state) -> {"slope": (C,) array}, d log p*^β / dβ at the states; {} without `temper`.
        states: (tables, state) -> (N, C), integers or whole numbers: the states of the model's variables, in its order
            and coded as `start`. None: the chains have none that follow p(s), and nobody can keep them.
        compiled: False: the functions run on the host, on every backend. They get NumPy arrays, in the precision asked
            for, and give NumPy arrays; a key is a `numpy.random.SeedSequence`, for `numpy.random.default_rng(key)`.
            This is the place for what no array program does: searches, solvers, exact draws of a tree. A function
            may still call what it has had compiled by the backend.
    """

    init: Callable[[Key, TablesT, Array], StateT]
    step: Callable[..., StateT]
    observe: Callable[[TablesT, StateT], Mapping[str, Array]]
    warm: Callable[..., StateT] = _keep
    adapt: Callable[[TablesT, StateT, bool], StateT] = _no_adaptation
    look: Callable[[Key, TablesT, StateT], Mapping[str, Array]] = _nothing_to_see
    temper: Callable[[Key, TablesT, StateT, Array], StateT] | None = None
    slope: Callable[[TablesT, StateT], Mapping[str, Array]] = _no_slope
    states: Callable[[TablesT, StateT], Array] | None = None
    compiled: bool = True

    def __post_init__(self) -> None:
        if self.warm is _keep:
            object.__setattr__(self, "warm", self.step)


class Conformance(NamedTuple):
    """What the conformance suite has to know of a method.

    Attributes:
        burn_in_first: exact draws of p(s) are no exact draws of what the chains hold (of auxiliary temperatures, say),
            and the suite burns chains in before it looks whether they keep their law.
        exact_on_trees: once an iteration has ended, its marginals and log Z are exact where the factor graph has no
            loop; the suite holds it to that.
    """

    burn_in_first: bool = False
    exact_on_trees: bool = False


class Method(ABC, Generic[TablesT]):
    """An inference method. Subclasses are frozen dataclasses; their fields are the method's settings.

    The settings' names and types are the schema of `method=NAME` in a sweep and the keyword arguments of
    `spinbench.run`. Checks of values belong into `__post_init__` and raise `SpinbenchError`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for `spinbench list`."""
    requires: ClassVar[tuple[str, ...]] = ()
    """What the generic program needs beside arrays: capabilities that `Backend.provides` names ("grad", "jax", "f64"),
    and importable modules."""
    model_form: ClassVar[ModelForm] = "pairwise"
    """What `plan` and `estimate` get. pairwise: a `PairwiseModel` (the harness converts, 1-of-K coding K-ary
    variables, and turns the marginals of units back); any: the model, simplified; categorical: the same, but of a
    `PairwiseModel` with 1-of-K groups a `FactorGraph` that has a variable of K states in place of each, and the harness
    turns its answers back; either: a `PairwiseModel` without groups where the model is one or can be, else the
    `FactorGraph`, as categorical."""
    kind: ClassVar[MethodKind] = "sampler"
    """How a run goes. sampler: chains that move from the states they start in, with a burn-in; draws: random draws of
    its own, for which neither starts nor burn-in matter; iteration: towards a fixed point, without burn-in, and a run
    may end early (`finished`); direct: one `advance` gives the whole answer, and budgets do not apply.

    An iteration whose statistic "iterations", reduced by "last", says how many steps each chain has taken begins with
    short batches, none of which is thrown away, and `Result.samples` is the number of its steps."""
    profile: ClassVar[MethodProfile] = MethodProfile()
    """What checks, `spinbench.advise` and plots ask of it."""
    conformance: ClassVar[Conformance] = Conformance()
    """What the conformance suite has to know of it; runs do not ask."""

    heaviest: ClassVar[Literal["", "exact", "annealed", "cooled"]] = ""
    """How a heaviest state is found with it (`target="map"`). exact: by elimination, whatever it computes otherwise;
    annealed: its program's `temper` takes its chains from hot to cold; cooled: it samples p*^β, at a β at which nearly
    all variables stay, and the `states` in which its chains end count. Empty: it is not asked for one."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        translate_members(cls)

    @property
    @abstractmethod
    def reductions(self) -> Mapping[str, Reduction]:
        """The statistics that programs and kernels of this method report, by name."""

    @abstractmethod
    def plan(self, model: Model) -> TablesT:
        """Tables for the steps: work that depends on the model only, on the host, timed separately.

        Raises:
            UnsupportedError: the method cannot treat this model; says why.
        """

    def program(self, backend: Backend) -> Program[TablesT]:
        """The generic program over `backend`'s arrays."""
        raise NotImplementedError(f"{self.name} has no generic program")

    def warm_up(self, tables: TablesT, engine: Engine, state: State, steps: int, trace: Trace) -> tuple[State, int]:
        """Run preparations on the chains (probes, stepping stones), which replace as many steps of burn-in.

        Args:
            tables: of `plan`, on the host.
            engine: that the chains run on.
            state: of the chains, at their start.
            steps: of burn-in that the budget gives.
            trace: of the run to come, for what is seen on the way (`climb`, `wanted`, `probes`) or is to be seen in
                burn-in (`watched`), and what condenses its looks (`digest`).

        Returns:
            The state, and the steps that were made; what is left of `steps` becomes burn-in.
        """
        return state, 0

    def finished(self, trace: Trace) -> bool:
        """Whether further steps would change nothing; asked after each batch."""
        return False

    @abstractmethod
    def estimate(self, model: Model, tables: TablesT, trace: Trace) -> Estimate:
        """Estimate marginals and log Z from all statistics so far, on the host."""


add_old_members(Method)

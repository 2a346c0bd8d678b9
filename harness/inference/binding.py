"""A method planned for a model, and the kernel or the program that runs it on a backend."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from spinbench.api import Backend, Engine, Estimate, Method, Precision, State, Tables, Tier
from spinbench.api.kernel import ProgramKernel
from spinbench.errors import BrokenPluginError, UnsupportedError
from spinbench.foundation import deadline, platforms, trees
from spinbench.inference import initial_states, kernels, origins, preflight, registry
from spinbench.inference.engine import ProgramEngine
from spinbench.mathematics.rounding import work_of
from spinbench.models.simplification import compute_simplification

if TYPE_CHECKING:
    from spinbench.api.trace import Trace
    from spinbench.inference.budget import Budget
    from spinbench.models import Model

# Compiled programs that stay in memory, each for the shapes of one model: a sweep alternates between few methods.
PROGRAMS = 4
_IMPORTED = set[type[Backend]]()


@dataclass(frozen=True, eq=False)
class BoundMethod:
    """A method planned for a model and bound to a backend.

    Attributes:
        method: with its settings.
        model: that it computes with.
        tables: its plan.
        engine: a kernel or a program.
        tier: "native" or "generic".
        kernel: distribution and version of the kernel; empty for a program.
        notes: what the kernel says of itself, a sentence for each that refused, and for each of another distribution
            that was not asked.
        plan_seconds, bind_seconds: that it took.
        rounding: nats that simplifying the model may have rounded off, where it was simplified for this.
    """

    method: Method
    model: Model
    tables: Tables
    engine: Engine
    tier: Tier
    kernel: str
    notes: tuple[str, ...]
    plan_seconds: float = 0.0
    bind_seconds: float = 0.0
    rounding: float = 0.0

    @property
    def slack(self) -> float:
        """Nats that rounding may have taken off."""
        return work_of(self.model).allowance() + self.rounding

    def initial_state(self, seed: int, chains: int) -> State:
        """Of a method that finds its own starts."""
        return self.engine.init(seed, np.zeros((self.model.num_variables, chains), dtype=np.int8))

    def spread_starts(self, chains: int, seed: int) -> np.ndarray:
        """(N, C) states, as chains that remember their starts begin in."""
        return initial_states.spread_starts(self.model, chains, seed, True)

    def estimate_from(self, trace: Trace) -> Estimate:
        """With what simplifying may have rounded."""
        return origins.allowing_for(self.method.estimate(self.model, self.tables, trace), self.rounding)


def plan_and_bind(
    method: Method,
    backend: str,
    model: Model,
    *,
    precision: Precision = "float64",
    device: str = "cpu",
    wish: kernels.Wish = kernels.ANY,
    support: registry.Support | None = None,
    budget: Budget | None = None,
) -> BoundMethod:
    """A method's plan for a model, bound to a backend.

    Args:
        method, backend, model, precision, device, wish, support: as of `bind`.
        budget: of a run; a plan that takes more than a share of its seconds is refused or given up.

    Raises:
        UnsupportedError: as of `Method.plan`, `preflight.planning` and `bind`.
        UnavailableError, BrokenPluginError: as of `registry.require_support`.
    """
    since = time.perf_counter()
    with platforms.one_blas_thread(), preflight.planning(method, model, budget):
        tables = method.plan(model)
        seconds = time.perf_counter() - since
        bound = bind(method, backend, model, tables, precision=precision, device=device, wish=wish, support=support)
    return replace(bound, plan_seconds=seconds)


def bind(
    method: Method,
    backend: str,
    model: Model,
    tables: Tables,
    *,
    precision: Precision = "float64",
    device: str = "cpu",
    wish: kernels.Wish = kernels.ANY,
    support: registry.Support | None = None,
) -> BoundMethod:
    """A planned method on a backend: the first kernel that does not refuse, else the method's program.

    Args:
        method: with its settings.
        backend: a registered name.
        model: as the method takes it.
        tables: its plan.
        precision, device: as `spinbench.run` takes them.
        wish: whether a kernel or the program is asked, and whose kernel.
        support: what `registry.require_support` said of them, where it was asked; a small model's answer takes as long.

    Raises:
        UnsupportedError: as `registry.require_support`; all kernels refuse and there is no program, or none was to run.
        UnavailableError, BrokenPluginError: as `registry.require_support`.
    """
    since = time.perf_counter()
    how = support or registry.require_support(method, backend, precision, wish)
    cls = registry.backend_class(backend)
    # The first instance of a class imports the framework, which counts as compilation.
    with nullcontext() if cls in _IMPORTED else deadline.compiling():
        instance = cls(precision=precision, device=device)
    _IMPORTED.add(cls)
    points = kernels.candidates(method.name, backend, wish)
    engine, kernel, refusals = kernels.first(points, method, instance, model, tables)
    tier: Tier = "native"
    # An `Engine` need not be a `Kernel` and may lack `notes`.
    engine_notes = getattr(engine, "notes", ())
    if not isinstance(engine_notes, tuple | list) or not all(isinstance(note, str) for note in engine_notes):
        raise BrokenPluginError(
            f"{kernel}'s kernel {method.name}.{backend} notes {engine_notes!r}; (text, …) is needed"
        )
    if isinstance(engine, ProgramKernel):
        engine = ProgramEngine(engine.program, instance, engine.tables, method.reductions)
    if engine is None:
        tier = "generic"
        if refusals and (wish.tier == "native" or registry.why_no_program(type(method), cls)):
            raise UnsupportedError("; ".join(refusals))
        try:
            engine = _program_engine(method, instance, tables)
        except UnsupportedError as why:
            raise UnsupportedError("; ".join([*refusals, str(why)])) from why
    # The refusals are of the first points, one each.
    asked = zip(points, refusals, strict=False)
    reasons = [why for point, why in asked if wish != kernels.ANY or kernels.is_for_device(point, device)]
    notes = (*engine_notes, *reasons, *how.notes)
    seconds = time.perf_counter() - since
    return BoundMethod(method, model, tables, engine, tier, kernel, notes, bind_seconds=seconds)


def _program_engine(method: Method, backend: Backend, tables: Tables) -> ProgramEngine:
    """Its program on tables; the latest that were compiled are used again for tables of the same shapes."""
    if type(backend).compile is Backend.compile or not _is_key(method):
        return ProgramEngine(method.program(backend), backend, tables, method.reductions)
    shapes: list[object] = []
    trees.map_arrays(lambda leaf: shapes.append((np.shape(leaf), np.asarray(leaf).dtype.str)), tables)
    cls, precision, device = type(backend), backend.precision, backend.device
    again = _without_tables(method, repr(method), cls, precision, device, repr(shapes))  # type: ignore[arg-type]
    return again.on(tables)


def _is_key(method: Method) -> bool:
    try:
        hash(method)
    # A plugin's method with an unhashable setting, such as a list, is compiled anew.
    except TypeError:
        return False
    return True


@lru_cache(maxsize=PROGRAMS)
def _without_tables(
    method: Method, settings: str, backend: type[Backend], precision: Precision, device: str, shapes: str
) -> ProgramEngine:
    instance = backend(precision=precision, device=device)
    return ProgramEngine(method.program(instance), instance, (), method.reductions)


def plan_simplified(
    model: Model, name: str, backend: str, settings: dict[str, object], tier: Literal["native", "generic"] | None = None
) -> BoundMethod:
    """A registered method, with its settings, for what simplifying leaves of a model.

    Args:
        model: any.
        name: of the method.
        backend: a registered name.
        settings: of the method.
        tier: as `spinbench.run` takes it.

    Raises:
        UnsupportedError: as of `plan_and_bind`.
    """
    simple = compute_simplification(model)
    bound = plan_and_bind(registry.make_method(name, settings), backend, simple.model, wish=kernels.Wish(tier))
    return replace(bound, rounding=simple.rounding)

"""What a backend of another library is, what its kernels share, and kernels of exact solvers.

Of those, one `advance` asks for log Z and all marginals of a model built before. The search for an elimination order
counts as run time, as for our own, unless a kernel says otherwise. Libraries of factor graphs get models as one table a
scope, those of Ising models binary pairs in the ±1 form, σ = 2s - 1.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from types import ModuleType
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from spinbench.api import (
    Backend,
    Factor,
    FactorGraph,
    Kernel,
    Method,
    Model,
    PairwiseModel,
    Precision,
    States,
    Tables,
    to_factor_graph,
)
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.methods.exact import COST_NAMES, Exact
from spinbench.reference.orders.order import elimination_order, pairs_of

FloatArray = npt.NDArray[np.float64]
NO_LOG_Z = "the library gives no log Z"
NO_MARGINALS = "the library gives no marginals"
PLAIN = {"solver": ("auto",), "pairs": (False,), "draws": (0,)}


class LibraryBackend(Backend):
    """Another library on the CPU, in double precision where it says no more; it runs kernels of its own alone."""

    provides: ClassVar[frozenset[str]] = frozenset({"f64"})
    install = "pip install 'spinbench[peers]'"


class JaxLibraryBackend(LibraryBackend):
    """One on JAX, in either precision and on a GPU, too."""

    provides: ClassVar[frozenset[str]] = frozenset({"f32", "f64", "gpu"})

    def __init__(self, *, precision: Precision = "float64", device: str = "cpu") -> None:
        super().__init__(precision=precision, device=device)
        if device != "cpu":
            import jax

            from spinbench.backends.jax import find_device

            find_device(jax, self.name, device)


def setting_refusal(backend: Backend, method: Method, allowed: Mapping[str, tuple[object, ...]]) -> str:
    """Why a library does not do what is asked for; empty: it does. The first of the allowed values is the plain one."""
    for setting, values in allowed.items():
        if (value := getattr(method, setting, values[0])) not in values:
            return f"{backend.name} does {setting}={' or '.join(map(str, values))}, not {setting}={value}"
    return ""


class OnJax:
    """A kernel of a library on JAX: its programs are kept; its device and 64 bits are set for its own calls alone."""

    def load_jax(self, backend: Backend) -> ModuleType:
        """JAX, imported."""
        import jax

        from spinbench.backends.jax import find_device, keep_programs, raise_if_exhausted

        keep_programs(jax)
        self._jax, self._wide, self._name = jax, backend.precision == "float64", backend.name
        self._raise_if_exhausted = raise_if_exhausted
        self._device = find_device(jax, backend.name, backend.device)
        return jax

    @contextmanager
    def _scope(self) -> Iterator[None]:
        with self._jax.enable_x64(self._wide), self._jax.default_device(self._device):
            try:
                yield
            except self._jax.errors.JaxRuntimeError as error:
                self._raise_if_exhausted(error, self._device, self._name)
                raise


class Spins(NamedTuple):
    """log p* = h·σ + Σ J_ij σ_i σ_j + constant.

    Attributes:
        h: (N,) fields; edges: (E, 2) integers; J: (E,) couplings.
        constant: what the form leaves over.
    """

    h: FloatArray
    edges: npt.NDArray[np.int64]
    J: FloatArray
    constant: float


def pairs_refusal(library: str, model: Model) -> str:
    """Why a library of binary pairs does not take the model; empty: it does."""
    if isinstance(model, PairwiseModel):
        if model.groups:
            return f"{library} takes binary variables in pairs; {model.name} has 1-of-K groups"
        return ""
    pairs = all(len(factor.scope) <= 2 for factor in model.factors)
    if set(model.cardinalities) <= {2} and pairs and not model.has_zeros:
        return ""
    return f"{library} takes binary variables in pairs without hard zeros, which {model.name} is not"


def spin_form(model: PairwiseModel, order: np.ndarray | None = None) -> Spins:
    """The ±1 form, its variables renumbered so that `order[k]` of the model is its k-th."""
    n = model.num_variables
    order = np.arange(n) if order is None else np.asarray(order)
    place = np.argsort(order)
    J = model.couplings / 4
    first, second = model.edges[:, 0], model.edges[:, 1]
    h = model.biases / 2 + np.bincount(first, J, minlength=n) + np.bincount(second, J, minlength=n)
    constant = float(model.biases.sum() / 2 + J.sum() + model.log_constant)
    return Spins(h[order], place[model.edges].reshape(-1, 2), J, constant)


class ModelTables(NamedTuple):
    """Factors of a model.

    Attributes:
        sizes: (N,) numbers of states.
        scopes: the variables of each factor, sorted and distinct: tables of the same scope are multiplied. Each
            variable has one of its own.
        tables: of each factor; scale: log of what they were divided by, so that none overflows.
    """

    sizes: tuple[int, ...]
    scopes: list[tuple[int, ...]]
    tables: list[FloatArray]
    scale: float


def build_tables(model: Model) -> ModelTables:
    """One table for each scope, its largest entry 1."""
    flat = factor_tables(model, absorb=False)
    sizes, logs = tuple(flat.cardinalities.tolist()), dict[tuple[int, ...], FloatArray]()
    for scope, values in zip(pairwise(flat.scope_starts), pairwise(flat.offsets), strict=True):
        variables = tuple(flat.scope_variables[slice(*scope)].tolist())
        logs[variables] = flat.values[slice(*values)].reshape([sizes[v] for v in variables])
    for v, size in enumerate(sizes):
        logs.setdefault((v,), np.zeros(size))
    tops = [float(table.max()) for table in logs.values()]
    scaled = [np.exp(table - top) for table, top in zip(logs.values(), tops, strict=True)]
    return ModelTables(sizes, list(logs), scaled, flat.log_constant + sum(tops))


def all_named(model: Model) -> FactorGraph:
    """The model with a factor for each variable, and constants in `log_constant`, for readers that need it so."""
    graph = to_factor_graph(model)
    factors = [factor for factor in graph.factors if factor.scope]
    constant = sum(float(factor.log_table) for factor in graph.factors if not factor.scope)
    named = {v for factor in factors for v in factor.scope}
    factors += [Factor((v,), np.zeros(k)) for v, k in enumerate(graph.cardinalities) if v not in named]
    return dataclasses.replace(graph, factors=tuple(factors), log_constant=graph.log_constant + constant)


def span(model: Model) -> float:
    """Nats between the largest and the least weight of a table that is not zero, of the widest table."""
    flat = to_factor_graph(model).flat
    if not len(flat):
        return 0.0
    is_finite = np.isfinite(flat.logs)
    tops = np.maximum.reduceat(np.where(is_finite, flat.logs, -np.inf), flat.offsets[:-1])
    lows = np.minimum.reduceat(np.where(is_finite, flat.logs, np.inf), flat.offsets[:-1])
    return float((tops - lows).max())


def too_wide(library: str, model: Model, max_gib: float) -> str:
    """Why a library is not asked: even the order that we find is too wide for the memory; empty: it is not."""
    graph = to_factor_graph(model)
    order = elimination_order(graph.cardinalities, pairs_of(factor.scope for factor in graph.factors))
    if order.complete and 8 * 2.0**order.log2_total <= max_gib * 2**30:
        return ""
    return (
        f"{library} is not asked for {model.name}: in an order of width {order.width} tables take more than "
        f"max_gib={max_gib:g}"
    )


Built = TypeVar("Built")
"""A model as the library has it, and all that is made once."""


class Answer(NamedTuple):
    """What a library found.

    Attributes:
        marginals: (K_v,) of each variable; they need not add up to 1. Empty where there are none.
        log_z: natural logarithm of Z; NaN where there is none.
    """

    marginals: list[FloatArray]
    log_z: float = float("nan")


class LibraryAnswer(Kernel[Tables, int], Generic[Built]):
    """An exact solver of another library.

    Class attributes:
        compiles: whether the first call is no measurement.
    """

    compiles: ClassVar[bool] = False

    @classmethod
    def takes(cls, backend: Backend, model: Model) -> str:
        """Why it does not take the model; empty: it does."""
        return ""

    @classmethod
    def refuses(cls, method: Exact, backend: Backend, model: Model) -> str:
        why = setting_refusal(backend, method, PLAIN) or cls.takes(backend, model)
        return why or too_wide(backend.name, model, method.max_bytes / 2**30)

    def __init__(self, method: Exact, backend: Backend, model: Model, tables: Tables) -> None:
        self.library, self._built = backend.name, self.build(model)

    @abstractmethod
    def build(self, model: Model) -> Built:
        """The library's own model, and all that is made once."""

    @abstractmethod
    def solve(self, built: Built, seed: int) -> Answer:
        """The answer."""

    def init(self, seed: int, start: States) -> int:
        return seed

    def advance(self, state: int, steps: int) -> tuple[int, dict[str, np.ndarray]]:
        answer = self.solve(self._built, state)
        flat = np.concatenate([np.empty(0), *(np.asarray(table) / np.sum(table) for table in answer.marginals)])
        cost = np.full((len(COST_NAMES), 1), -1.0)
        return state, {"log_z": np.array([answer.log_z]), "marginals": flat[:, None], "cost": cost}

"""The contracts between methods, backends and the harness. This module imports no array library.

    Method   what to compute: settings, `plan` on the host, a generic `Program`, and `estimate`.
    Program  pure functions over a backend's array namespace: init, step, observe (and warm, adapt for burn-in).
    Backend  where to compute: array namespace, functional random keys, loops, compilation, transfer.
    Kernel   a native implementation of one (method, backend) pair, in place of the generic program.
    Engine   what the driver sees of either: a program bound to a backend, or a kernel.

Arrays that belong to chains carry the chain axis LAST: states are (N, C), per-chain scalars (C,). With C >= 16
the innermost loop then runs over chains, which is what vector units and compilers want.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np

    from spinbench.api.trace import Trace
    from spinbench.models import Model

Precision = Literal["float32", "float64"]
LogZKind = Literal["estimate", "lower", "upper", "exact"]
Tier = Literal["native", "generic", "unsupported", "unavailable", "broken"]

Reduction = Literal["sum", "logsumexp", "last"]
"""How a statistic is combined over the steps of a batch: summed, summed in the log domain, or its value after
the last step (a thinned draw)."""

Array = Any
"""An array of some backend."""
State = Any
"""What a chain carries from step to step; a pytree of arrays, opaque to the harness."""
Tables = Any
"""What `Method.plan` prepared for a model: a NamedTuple of NumPy arrays (nested tuples allowed)."""
Key = Any
"""A functional random key of some backend."""


@dataclass(frozen=True)
class Estimate:
    """What a method says about a model.

    Attributes:
        marginals: (N,) float64 p(s_i = 1) for binary models, else a list of (K_v,) arrays; None where the
            method gives none.
        marginals_se: standard errors in the same layout; None for deterministic methods.
        log_z: natural logarithm of the partition function; None where the method gives none.
        log_z_se: its standard error; None for deterministic methods.
        log_z_kind: what `log_z` is; a "lower" or "upper" bound holds with certainty.
        ess: (N,) effective sample sizes: how many independent exact draws of s_i would have an empirical
            mean with the standard error reached. Rao-Blackwellisation can lift it above the sample count.
        r_hat: (N,) split R-hat of s_i.
        log_z_estimates: every estimator of log Z that ran, by name, as (value, standard error).
        diagnostics: scalars of interest (acceptance rate, step size, …).
        converged: False where an iteration ended without reaching its tolerance.
        doubts: why not to believe the marginals or log Z ("marginals not mixed", "log Z unresolved", …); empty: both
            hold within what is claimed.
    """

    marginals: Any = None
    marginals_se: Any = None
    log_z: float | None = None
    log_z_se: float | None = None
    log_z_kind: LogZKind = "estimate"
    ess: np.ndarray | None = None
    r_hat: np.ndarray | None = None
    log_z_estimates: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    converged: bool = True
    doubts: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        """The verdict: "ok", or the doubts in a line."""
        return ", ".join([*([] if self.converged else ["not converged"]), *self.doubts]) or "ok"


def _keep(key: Key, tables: Tables, state: State) -> State:
    raise AssertionError("replaced in Program.__post_init__")


def _nothing_to_see(key: Key, tables: Tables, state: State) -> Mapping[str, Array]:
    return {}


def _no_adaptation(tables: Tables, state: State, last: bool) -> State:
    return state


@dataclass(frozen=True)
class Program:
    """Pure functions over a backend's arrays. All chains advance together; the chain axis is last.

    Attributes:
        init: (key, tables, start) -> state; `start` is an (N, C) array of 0 and 1 in the backend's real type.
            If `start` holds exact draws of p(s), the state must be an exact draw of the chain's target.
        step: (key, tables, state) -> state, one sample.
        observe: (tables, state) -> {name: array}; one entry for each of the method's `reductions`.
        warm: like `step`, during burn-in: it may adapt settings held in the state. By default `step`.
        adapt: (tables, state, last) -> state, called at the ends of the burn-in's windows (after 1/8, 1/4 and
            1/2 of it, and with last=True at its end, after which settings stay frozen).
        look: (key, tables, state) -> {name: (C,) array}, what is worth more than a step to find out: called at a few
            steps, evenly spaced (`Trace.looks`). It leaves the chains as they are.
    """

    init: Callable[[Key, Tables, Array], State]
    step: Callable[[Key, Tables, State], State]
    observe: Callable[[Tables, State], Mapping[str, Array]]
    warm: Callable[[Key, Tables, State], State] = _keep
    adapt: Callable[[Tables, State, bool], State] = _no_adaptation
    look: Callable[[Key, Tables, State], Mapping[str, Array]] = _nothing_to_see

    def __post_init__(self) -> None:
        if self.warm is _keep:
            object.__setattr__(self, "warm", self.step)


class Engine(Protocol):
    """What the driver advances. A state handed to `warm`, `adapt` or `advance` is consumed: use the returned one.

    The random numbers of a step depend on the seed and the step's index alone, so that the way in which a run is
    cut into batches does not change its result.
    """

    def init(self, seed: int, start: np.ndarray) -> State:
        """`start`: (N, C) int8 in {0, 1}, C chains."""
        ...

    def warm(self, state: State, steps: int) -> State:
        """Burn-in steps."""
        ...

    def adapt(self, state: State, last: bool) -> State:
        """End of a burn-in window."""
        ...

    def advance(self, state: State, steps: int) -> tuple[State, dict[str, np.ndarray]]:
        """`steps` >= 1 samples and their statistics, combined by the method's reductions, on the host."""
        ...

    def look(self, state: State) -> dict[str, np.ndarray]:
        """What the program's `look` sees, on the host; the state stays usable."""
        ...


class Method(ABC):
    """An inference method. Subclasses are frozen dataclasses; their fields are the method's settings.

    The settings' names and types are the schema of `conf/method/NAME.yaml` and the keyword arguments of
    `spinbench.run`. Checks of values belong into `__post_init__` and raise `SpinbenchError`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for `spinbench list`."""
    needs: ClassVar[frozenset[str]] = frozenset({"arrays"})
    """What the generic program asks of `Backend.provides`. Empty: there is no generic program."""
    takes: ClassVar[Literal["pairwise", "any"]] = "pairwise"
    """What `plan` and `estimate` get. pairwise: a `PairwiseModel` (the harness converts, 1-of-K coding K-ary
    variables, and turns the marginals of units back); any: the model as it is."""
    anytime: ClassVar[bool] = True
    """False: one `advance` gives the whole answer (exact solvers), and budgets do not apply."""
    stochastic: ClassVar[bool] = True
    """False: iterations towards a fixed point; there is no burn-in, and a run may end early (`finished`)."""

    @property
    @abstractmethod
    def reductions(self) -> Mapping[str, Reduction]:
        """The statistics that programs and kernels of this method report, by name."""

    @abstractmethod
    def plan(self, model: Model) -> Tables:
        """Work that depends on the model alone, on the host, timed apart.

        Raises:
            UnsupportedError: the method cannot treat this model; says why.
        """

    def program(self, backend: Backend) -> Program:
        """The generic program over `backend`'s arrays."""
        raise NotImplementedError(f"{self.name} has no generic program")

    def batches(self, chains: int) -> int:
        """Into how many batches a run of so many chains is cut at least, as far as its budget allows.

        Matters where a statistic is reduced by "last", of which each batch gives one draw; 0: as the driver likes.
        """
        return 0

    def finished(self, trace: Trace) -> bool:
        """Whether further steps would change nothing; asked after each batch."""
        return False

    @abstractmethod
    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """From all statistics so far to marginals and log Z, on the host."""


class Backend(ABC):
    """A compute backend. Frameworks are imported in the constructor, never at module level.

    Class attributes:
        provides: capabilities out of {"arrays", "loop", "grad", "f32", "f64", "gpu"}. "arrays": the members below
            exist, so generic programs run; "loop": `repeat` runs in compiled code; "grad": the framework can
            differentiate a program (for methods whose `needs` ask for it; none that is built in does); "f32", "f64":
            the precisions offered; "gpu": device="gpu" is understood, and refused where there is none.
        requires: names of importable modules that must exist.
        install: the command that installs them.
    """

    name: ClassVar[str]
    provides: ClassVar[frozenset[str]]
    requires: ClassVar[tuple[str, ...]] = ()
    install: ClassVar[str] = ""

    xp: Any
    """The array namespace (array API names: `matmul`, `exp`, `where`, `sum`, `concat`, …)."""
    real: Any
    """The floating dtype of `precision`."""

    def __init__(self, *, precision: Precision = "float64", device: str = "cpu") -> None:
        """Raises UnsupportedError where the precision or device is not offered."""
        self.precision = precision
        self.device = device

    def put(self, tree: Any) -> Any:
        """Host arrays (in nested tuples) to the device; floats become `real`, integers at most 64 bits."""
        raise NotImplementedError

    def host(self, tree: Any) -> Any:
        """Device arrays (in nested tuples or dicts) to NumPy arrays, synchronised."""
        raise NotImplementedError

    def sync(self, tree: Any) -> Any:
        """Wait until all arrays are computed; returns its argument."""
        raise NotImplementedError

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A compiled version of a pure function of arrays."""
        raise NotImplementedError

    def repeat(self, count: Any, body: Callable[[Any, Any], Any], carry: Any) -> Any:
        """carry = body(i, carry) for i = 0 … count - 1; `count` may be a traced integer."""
        raise NotImplementedError

    def key(self, seed: int) -> Key:
        """A key from a non-negative seed."""
        raise NotImplementedError

    def fold(self, key: Key, index: Any) -> Key:
        """An independent key for each integer `index` (may be traced)."""
        raise NotImplementedError

    def uniform(self, key: Key, shape: tuple[int, ...]) -> Array:
        """[0, 1) of dtype `real`."""
        raise NotImplementedError

    def normal(self, key: Key, shape: tuple[int, ...]) -> Array:
        """Standard normal of dtype `real`."""
        raise NotImplementedError

    def update(self, array: Array, index: Any, values: Array) -> Array:
        """A copy of `array` with array[index] = values (index: integer, integer array or slice of rows)."""
        raise NotImplementedError

    def place(self, array: Array, index: Any, values: Array) -> Array:
        """`update` of an array that the caller gives up: it may be overwritten. By default a copy."""
        return self.update(array, index, values)

    def add(self, total: Array, values: Array) -> Array:
        """total + values, of a `total` that the caller gives up."""
        return total + values

    def add_product(self, total: Array, values: Array, scale: Array) -> Array:
        """total + scale * values, of a `total` that the caller gives up."""
        return total + scale * values

    def add_compensated(self, total: Array, excess: Array, values: Array) -> tuple[Array, Array]:
        """(total + values, what rounding put into it), both arrays given up: `excess` is what `total` has too much.

        Kahan, "Further remarks on reducing truncation errors", CACM 1965.
        """
        corrected = values - excess
        grown = total + corrected
        return grown, (grown - total) - corrected

    def window(self, array: Array, start: Any, length: int) -> Array:
        """Rows start … start + length - 1 of `array`, all of which exist (`start` may be traced)."""
        return self.xp.take(array, start + self.xp.arange(length), axis=0)

    def sigmoid(self, x: Array) -> Array:
        """1 / (1 + e^-x), without overflow; `x` stays."""
        return 0.5 * self.xp.tanh(0.5 * x) + 0.5


class Kernel(ABC):
    """A native implementation of one (method, backend) pair; an `Engine`.

    Registered in the entry-point group `spinbench.kernels` as METHOD.BACKEND.
    """

    @abstractmethod
    def __init__(self, method: Any, backend: Backend, model: Model, tables: Tables) -> None: ...

    @abstractmethod
    def init(self, seed: int, start: np.ndarray) -> State: ...

    def warm(self, state: State, steps: int) -> State:
        """Burn-in; by default the statistics of `advance` are dropped."""
        return self.advance(state, steps)[0] if steps else state

    def adapt(self, state: State, last: bool) -> State:
        """By default nothing is adapted."""
        return state

    @abstractmethod
    def advance(self, state: State, steps: int) -> tuple[State, dict[str, np.ndarray]]: ...

    def look(self, state: State) -> dict[str, np.ndarray]:
        """As the generic program's `look`; by default nothing."""
        return {}

"""Kernels, native implementations of one (method, backend) pair; and engines, which the driver runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, Protocol

from spinbench.api.old_members import add_old_kernel_members, translate_kernel
from spinbench.api.types import State, StateT, TablesT

if TYPE_CHECKING:
    import numpy as np

    from spinbench.api.backend import Backend
    from spinbench.api.host_arrays import States
    from spinbench.api.method import Program
    from spinbench.api.types import Tables
    from spinbench.models import Model


class Engine(Protocol):
    """Chains of one run as the driver sees them, from a kernel or from a program bound to a backend.

    A state handed to `warm`, `adapt` or `advance` is consumed: use the returned one.

    The random numbers of a step depend on the seed and the step's index alone, so that the way in which a run is
    cut into batches does not change its result.
    """

    def init(self, seed: int, start: States) -> State:
        """Chains that begin at `start`, (variable, chain) states from 0 on, int8 or int32."""
        ...

    def warm(self, state: State, steps: int) -> State:
        """Make burn-in steps."""
        ...

    def adapt(self, state: State, last: bool) -> State:
        """Adapt settings at the end of a burn-in window."""
        ...

    def advance(self, state: State, steps: int) -> tuple[State, dict[str, np.ndarray]]:
        """Make `steps` >= 1 samples; their statistics, combined by the method's reductions, on the host."""
        ...

    def look(self, state: State) -> dict[str, np.ndarray]:
        """The statistics of the program's `look`, on the host; the state stays usable."""
        ...

    def temper(self, state: State, betas: np.ndarray, sweeps: int) -> tuple[State, np.ndarray]:
        """Make `sweeps` sweeps at each of the inverse temperatures `betas` (K,), one after the other.

        Returns:
            The state and (sweeps, K, C) slopes d log p*^β / dβ after each sweep, of no chains where there are none.
        """
        ...

    def slope(self, state: State) -> dict[str, np.ndarray]:
        """{"slope": (C,)}: d log p*^β / dβ at the current states; a cheap look."""
        ...

    def states(self, state: State) -> np.ndarray | None:
        """(N, C) states of the model's variables, as the program's `states`, on the host, which no later step writes
        into; None where it has none."""
        ...


class Kernel(ABC, Generic[TablesT, StateT]):
    """A native implementation of one (method, backend) pair; an `Engine`.

    Registered in the entry-point group `spinbench.kernels` as METHOD.BACKEND. It need not do all that the method can:
    where it refuses, the next kernel or the method's generic program runs, and the result says why (`Result.notes`).

    Attributes:
        notes: what it does otherwise than the method says, or leaves out, a sentence each; `Result.notes` repeats them.
    """

    notes: tuple[str, ...] = ()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        translate_kernel(cls)

    @classmethod
    def refuses(cls, method: Any, backend: Backend, model: Model) -> str:
        """Why the kernel does not run this model, in one sentence for `Result.notes`; empty if it does.

        Asked before it is constructed. What can be known only from the tables, the constructor may refuse with an
        `UnsupportedError`.

        Args:
            method: with its settings.
            backend: with its precision and device.
            model: as the method's `plan` gets it.
        """
        return ""

    @abstractmethod
    def __init__(self, method: Any, backend: Backend, model: Model, tables: TablesT) -> None: ...

    @abstractmethod
    def init(self, seed: int, start: States) -> StateT: ...

    def warm(self, state: StateT, steps: int) -> StateT:
        """Burn-in; by default the statistics of `advance` are dropped."""
        return self.advance(state, steps)[0] if steps else state

    def adapt(self, state: StateT, last: bool) -> StateT:
        """By default nothing is adapted."""
        return state

    @abstractmethod
    def advance(self, state: StateT, steps: int) -> tuple[StateT, dict[str, np.ndarray]]: ...

    def look(self, state: StateT) -> dict[str, np.ndarray]:
        """As the generic program's `look`; by default nothing."""
        return {}

    def temper(self, state: StateT, betas: np.ndarray, sweeps: int) -> tuple[StateT, np.ndarray]:
        """As of an `Engine`; by default there are no temperatures."""
        import numpy as np  # here and not above: the contracts import without an array library

        return state, np.empty((sweeps, len(betas), 0))

    def slope(self, state: StateT) -> dict[str, np.ndarray]:
        """As of an `Engine`; by default nothing."""
        return {}

    def states(self, state: StateT) -> np.ndarray | None:
        """As of an `Engine`; by default none."""
        return None


add_old_kernel_members(Kernel)


class ProgramKernel:
    """A kernel that is a generic program with tables of its own, which the harness binds as it does a method's.

    Attributes:
        program, tables: what is bound; the method's `estimate` gets the tables of its `plan`.
        notes: as of `Kernel`.
    """

    program: Program
    tables: Tables
    notes: tuple[str, ...] = ()

    @classmethod
    def refuses(cls, method: Any, backend: Backend, model: Model) -> str:
        """As of `Kernel`."""
        return ""


class LookingKernel(Kernel[TablesT, StateT]):
    """A kernel that looks at its chains between steps in less time than one look takes after the other."""

    @abstractmethod
    def look_steps(self, state: StateT) -> int:
        """Approximate cost in steps of a look by `advance_and_look`; 0: it does not support these chains."""

    @abstractmethod
    def advance_and_look(
        self, state: StateT, steps: int, first: int, every: int
    ) -> tuple[StateT, dict[str, np.ndarray], dict[str, np.ndarray]]:
        """As `advance`, with looks after step `first` and each `every` further ones, in less time than one by one.

        Returns:
            The state, the statistics of all steps, and (L, C) what each look sees, the same as `look` there.
        """

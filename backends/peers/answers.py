"""Kernels of exact solvers in other libraries: one `advance` asks for log Z and all marginals of a model built before.

The search for an elimination order counts as run time, as for our own, unless a kernel says otherwise.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from spinbench.api import Backend, Kernel, Model, States, Tables
from spinbench.backends.peers import library
from spinbench.backends.peers.tables import FloatArray, too_wide
from spinbench.methods.exact import COST_NAMES, Exact

NO_LOG_Z = "the library gives no log Z"
NO_MARGINALS = "the library gives no marginals"
PLAIN = {"solver": ("auto",), "pairs": (False,), "draws": (0,)}


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
        why = library.setting_refusal(backend, method, PLAIN) or cls.takes(backend, model)
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

"""What array programs of samplers have in common."""

from __future__ import annotations

from dataclasses import fields

from spinbench.api import Array, Backend, Key, Program, Tables
from spinbench.foundation.arithmetic import Arithmetic, make_operations
from spinbench.foundation.trees import Tree
from spinbench.mathematics.graphs.table_layouts import Entries
from spinbench.mathematics.heat_bath.table_updates import TableBath


class ArrayOperations:
    """Functions over a backend's arrays."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self._xp = backend, backend.xp
        self._sigmoid = make_operations(backend, Arithmetic).sigmoid


class ChainProgram(ArrayOperations):
    """Over a backend's arrays. A subclass has `init`, `step` and `observe`, and what else of `Program` it needs."""

    def program(self) -> Program:
        """The contract's view."""
        parts = (part.name for part in fields(Program))
        return Program(**{name: getattr(self, name) for name in parts if hasattr(self, name)})


class IndependentSteps(ChainProgram):
    """A step knows nothing of those before it: there is nothing to burn in."""

    def warm(self, key: Key, t: Tables, state: Tree) -> Tree:
        """Nothing."""
        return state


class TableProgram(ChainProgram):
    """Of states (N, C) int32 of any factor graph."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self._bath: TableBath = make_operations(backend, TableBath)

    def uniform_states(self, key: Key, sizes: Array, chains: int) -> Array:
        """Independent draws at β = 0 of variables of so many states (N,)."""
        xp, sizes = self._xp, sizes[:, None]
        u = self._backend.uniform(key, (sizes.shape[0], chains))
        return xp.astype(xp.minimum(xp.floor(u * sizes), sizes - 1), xp.int32)

    def log_weights(self, entries: Entries, x: Array) -> Array:
        """(C,) D with soft zeros."""
        return self._bath.log_weights(entries, x, floored=True)

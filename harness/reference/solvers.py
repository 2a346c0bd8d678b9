"""Tables of solvers, which "auto" chooses from, and the one that needs no compiler."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from spinbench.foundation import plugins
from spinbench.reference.closed_forms import KacWard, Torus
from spinbench.reference.elimination.matrix_tree import MatrixTree
from spinbench.reference.enumeration import Bipartite, Enumeration
from spinbench.reference.exchangeable.counting import Exchangeable
from spinbench.reference.problem import Problem
from spinbench.reference.solver import Solver

# Names of solvers in stages. "auto" only goes on to the next stage if no cheap solver applies: planar drawings and
# elimination orders take a search.
STAGES = (("enumeration", "grid", "torus", "rbm", "exchangeable"), ("kac_ward",), ("bucket_tree",))
BUILT_IN = ("auto", *(name for stage in STAGES for name in stage))
# Solvers of version 0.1, and what answers instead.
REMOVED = {"curie_weiss": "exchangeable answers complete graphs of one coupling"}
# Number of variables from which searches and drawings in Python take longer than loading compiled code.
MANY = 15_000


def plugin_names() -> tuple[str, ...]:
    """Solvers of `spinbench.solvers`; reads metadata only."""
    return tuple(name for name in plugins.entry_points("solvers") if name not in BUILT_IN)


def methods() -> tuple[str, ...]:
    """What `solve(method=…)` takes."""
    return (*BUILT_IN, *plugin_names())


class Kind(Protocol):
    """A class of solvers, or what chooses between two."""

    @property
    def can_sample(self) -> bool: ...

    def build(self, problem: Problem, /) -> Solver:
        """As `Solver.build`."""
        ...

    def passed_by(self, problem: Problem, /) -> bool:
        """As `Solver.passed_by`."""
        ...


@dataclass(frozen=True)
class Solvers:
    """What `solve` and `sample` choose from.

    Attributes:
        kinds: by their names, of which `BUILT_IN` has all.
        compiled_from: variables from which elimination is compiled, and cheaper than drawings.
        loading_seconds: what loading and compiling them has taken so far, in this process.
        nothing: seconds below which looking for a faster solver takes longer than the one that was found.
    """

    kinds: Mapping[str, Kind]
    compiled_from: float = math.inf
    nothing: float = 5e-4
    loading_seconds: Callable[[], float] = float

    def kind(self, name: str) -> Kind | None:
        """The solver of a name; None where it is not among these.

        Raises:
            BrokenPluginError: it is a plugin's, which failed on import or is no solver.
        """
        if name in BUILT_IN:
            return self.kinds.get(name)
        plugin: Kind = plugins.load("solvers", name, _check_solver)
        return plugin

    def search_seconds(self, size: int) -> float:
        """What the search for an order takes, about."""
        return (2e-5 if size > self.compiled_from else 5e-4) * size

    def stages(self, size: int) -> tuple[tuple[str, ...], ...]:
        """`STAGES`, with drawings last where orders are found sooner."""
        if size > max(self.compiled_from, MANY):
            return (STAGES[0], STAGES[2], STAGES[1])
        return STAGES


def _check_solver(solver: object) -> str:
    missing = (name for name in ("build", "passed_by", "can_sample") if not hasattr(solver, name))
    return next((f"is no solver: it has no {name}" for name in missing), "")


# Solvers in NumPy and Python.
NUMPY_SOLVERS = Solvers(
    {
        "enumeration": Enumeration,
        "torus": Torus,
        "rbm": Bipartite,
        "exchangeable": Exchangeable,
        "kac_ward": KacWard,
        "bucket_tree": MatrixTree,
    }
)

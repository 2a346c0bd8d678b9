"""Which operations over arrays are compiled, and how, before the first step of a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from spinbench.api import Precision
from spinbench.backends.numba.tables import array_sweeps, jumps
from spinbench.foundation.arithmetic import Operations
from spinbench.mathematics.heat_bath.table_updates import TableBath
from spinbench.methods.baselines.draws import ForestDraws
from spinbench.methods.baselines.jumps import Jumps

# Array operations by class: the compiled class that replaces it, and a function that compiles its kernels.
COMPILED: dict[Callable[..., Any], tuple[Callable[..., Any], Callable[[Precision], None]]] = {
    TableBath: (array_sweeps.CompiledTableBath, array_sweeps.compile_table_bath),
    ForestDraws: (array_sweeps.CompiledForestDraws, array_sweeps.compile_forest_draws),
    Jumps: (jumps.CompiledJumps, jumps.compile_jumps),
}


@cache
def find_operations_class(kind: Callable[..., Operations], precision: Precision) -> Callable[..., Operations]:
    """The class of operations in compiled code, or `kind` itself where there is none."""
    if kind not in COMPILED:
        return kind
    compiled, compile_all = COMPILED[kind]
    # Before the first step of a run, so that no step's time includes compilation.
    compile_all(precision)
    return compiled

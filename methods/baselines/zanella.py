"""Locally balanced jumps: a change of one variable is as likely as it is good, and chains wait where none is.

From x the chain goes to y, which differs in one variable, at the rate g(p(y) / p(x)) with Barker's g(t) = t / (1 + t),
so that p is balanced: p(x) g(p(y) / p(x)) = p(y) g(p(x) / p(y)). No jump is rejected. A state counts by the mean time
that the process stays there, one over the sum of its rates, in place of the time drawn (Rao-Blackwell), and marginals
are ratios of means over jumps. Zanella, "Informed proposals for local MCMC in discrete spaces", JASA 2020; as jump
process, Power and Goldman, "Accelerated sampling on discrete spaces with non-reversible Markov processes", 2019.

A step is a quarter as many jumps as there are variables. The law of the jumps is not p, but p times the sum of rates,
so that chains that start at p have to be burnt in. A chain that no rate leads away from stays, and marginals are not
believed. There is no log Z.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from spinbench.api import Backend, Conformance, Estimate, Method, MethodProfile, Model, Program, Reduction, Trace
from spinbench.foundation.arithmetic import make_operations
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import table_sweep
from spinbench.methods.baselines.jumps import Jumps, Tables, build_neighbourhoods
from spinbench.methods.weighted_means import importance_marginals, state_pairs

# Variables per jump in a step. A jump sums the rates of all states: with one jump per variable a step would take some
# N² / 2 updates.
VARIABLES_PER_JUMP = 4


@dataclass(frozen=True)
class Zanella(Method[Tables]):
    """Locally balanced jumps of single variables (Zanella 2020); the method has no settings."""

    name: ClassVar[str] = "zanella"
    summary: ClassVar[str] = "locally balanced jumps of single variables (Barker), on any factor graph"
    model_form = "categorical"
    profile = MethodProfile(single_site=True, family="chains at one temperature")
    conformance = Conformance(burn_in_first=True)

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """s (R, C) time in states, w (C,) time, stuck (C,) jumps that were none."""
        return dict.fromkeys(("s", "w", "stuck"), "sum")

    def plan(self, model: Model) -> Tables:
        """Tables of the rates, and whose rates a jump changes."""
        graph = factor_tables(model)
        sweep = table_sweep(graph, "chromatic", single=False)
        values = np.append(graph.values, 0.0)
        zero = np.isneginf(values)
        variables, states = state_pairs(model.cardinalities)
        levels = np.arange(int(graph.cardinalities.max(initial=1)))
        return Tables(
            sections=sweep.sections,
            # Hard zeros are counted apart from the finite entries: logits are updated by differences, and a difference
            # of two -∞ is NaN.
            values=np.stack([np.where(zero, 0.0, values), zero])[: 1 + zero.any()],
            neighbourhoods=build_neighbourhoods(graph),
            last=(graph.cardinalities[:, None] - 1).astype(np.int32),
            exists=(levels < graph.cardinalities[:, None]).astype(np.float64),
            jumps=np.zeros(max(-(-int((graph.cardinalities > 1).sum()) // VARIABLES_PER_JUMP), 1)),
            variables=variables,
            states=states,
        )

    def step_updates(self, tables: Tables) -> float:
        """A jump sums the rates of all states, which is about half as much as to draw them."""
        return 0.5 * len(tables.jumps) * float(tables.exists.size)

    def program(self, backend: Backend) -> Program:
        """Over `backend`'s arrays."""
        jumps: Jumps = make_operations(backend, Jumps)
        return jumps.program()

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """Marginals with what they may claim."""
        stuck = float(trace.mean("stuck").mean()) / len(tables.jumps)
        estimate = importance_marginals(model, trace, stuck > 0 and max(model.cardinalities) > 1)
        return replace(estimate, diagnostics={**estimate.diagnostics, "stuck": stuck})

"""Gauged belief propagation (G-BP) and its corrections, lower bounds on log Z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spinbench.api.bounds import MethodBounds
from spinbench.methods.gauge.method import PointMass
from spinbench.methods.gauge.search import Headline


@dataclass(frozen=True)
class GaugedBeliefPropagation(PointMass):
    """G-BP: max over gauges with non-negative tables of Σ_a log f_{a,G}(0), equation (8).

    Without the non-negativity its stationary points are those of belief propagation. Exact on trees and on cycles with
    an odd number of 2x2 tables of negative determinant.

    The marginals are derivatives of the bound in the logarithms of the model's weights: belief propagation's where
    that is a feasible gauge, exact where the bound is, and otherwise no more than an estimate.
    """

    name: ClassVar[str] = "g_bp"
    summary: ClassVar[str] = "gauged belief propagation; a lower bound on log Z"


@dataclass(frozen=True)
class GaugedBeliefPropagationSingle(PointMass):
    """G-BP-single: G-BP and all terms with a single 1, equation (10). No marginals."""

    name: ClassVar[str] = "g_bp_single"
    summary: ClassVar[str] = "gauged belief propagation with single corrections; a lower bound on log Z"
    headline: ClassVar[Headline] = "single"


@dataclass(frozen=True)
class GaugedBeliefPropagationMultiple(PointMass):
    """G-BP-multiple: G-BP and all terms with one or two 1s, equation (11). No marginals."""

    name: ClassVar[str] = "g_bp_multiple"
    summary: ClassVar[str] = "gauged belief propagation with single and pair corrections; a lower bound on log Z"
    headline: ClassVar[Headline] = "multiple"


@dataclass(frozen=True)
class GaugedBeliefPropagationSequential(PointMass):
    """G-BP-sequential: every remaining term of the sum over states, equation (9), by G-BP of its own. No marginals.

    One continuation an edge: the bound rises as the run goes on.
    """

    name: ClassVar[str] = "g_bp_sequential"
    summary: ClassVar[str] = "gauged belief propagation, edge by edge; a lower bound on log Z"
    names: ClassVar[tuple[str, ...]] = ("g_bp", "single", "multiple", "sequential")
    headline: ClassVar[Headline] = "sequential"


class GaugedBeliefBounds(MethodBounds):
    """A lower bound."""

    name = GaugedBeliefPropagation.name
    share, order = 0.06, 70

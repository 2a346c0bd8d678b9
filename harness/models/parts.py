"""Models too wide as they are, but not once all that sums out of them is taken out.

What is left, the core, gives log Z and the marginals of its own variables. A variable that sums out has a marginal of
its own once the conditionals of its ancestors among those that sum out are put back: a part of the model, which is as
wide as it is. As many of them as fit are put back together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from spinbench.errors import IntractableError
from spinbench.models.conditionals import Conditional, FloatArray
from spinbench.models.factor_graph import Factor, FactorGraph
from spinbench.models.simplification import Simplified, simplified

MANY = 64
"""More variables than a factor has."""
ATTEMPTS = 64
"""Parts that are tried; what they do not reach stays open."""

Solve = Callable[[FactorGraph], list[FloatArray]]
"""The marginals of all variables of a model; IntractableError where it is too wide."""


def core_of(model: FactorGraph) -> Simplified:
    """What is left once all that sums out is gone, given however many others."""
    return simplified(model, MANY)


def marginals(core: Simplified, found: list[FloatArray], solve: Solve) -> list[FloatArray]:
    """The marginals of all variables of the model that `core` is left of; NaN where they are out of reach.

    Args:
        core: from `core_of`.
        found: the marginals of its variables.
        solve: what parts are given to.
    """
    assert core.step is not None
    known = dict(zip(places(core), found, strict=False))  # a core of no variables has one that stands for none
    conditionals = {each.variable: each for each in core.step.conditionals}
    known |= _summed_out(core, conditionals, solve)
    full: list[FloatArray] = []
    for v, (size, states) in enumerate(zip(core.step.cardinalities, core.step.states, strict=True)):
        vector = np.zeros(size) if v in known or len(states) == 1 else np.full(size, np.nan)
        vector[list(states)] = 1.0 if len(states) == 1 else known.get(v, np.nan)
        full.append(vector)
    return full


def _summed_out(core: Simplified, conditionals: Mapping[int, Conditional], solve: Solve) -> dict[int, FloatArray]:
    """Over the possible states of those that are in reach. Groups that are too wide are halved."""
    known: dict[int, FloatArray] = {}
    beyond: set[int] = set()
    groups, attempts = [list(conditionals)], 0  # ancestors first
    while groups and attempts < ATTEMPTS:
        group = [v for v in groups.pop() if v not in known]
        group = [v for v in group if beyond.isdisjoint(_ancestry([v], conditionals))]
        if not group:
            continue
        ancestry = _ancestry(group, conditionals)
        attempts += 1
        try:
            found = solve(_part(core, [conditionals[v] for v in ancestry]))
        except IntractableError:
            middle = len(group) // 2
            if middle:
                groups += [group[middle:], group[:middle]]
            else:
                beyond.add(group[0])
            continue
        known |= dict(zip(ancestry, found[-len(ancestry) :], strict=True))
    return known


def _ancestry(variables: Iterable[int], conditionals: Mapping[int, Conditional]) -> list[int]:
    """These and all that they are given, directly or not, of those that sum out; ascending."""
    seen, waiting = set(variables), list(variables)
    while waiting:
        for u in conditionals[waiting.pop()].given:
            if u in conditionals and u not in seen:
                seen.add(u)
                waiting.append(u)
    return sorted(seen)


def places(core: Simplified) -> list[int]:
    """The variables of the model that the core's are."""
    assert core.step is not None
    return [v for v, units in enumerate(core.step.variables) if units]


def _part(core: Simplified, added: list[Conditional]) -> FactorGraph:
    """The core and, behind its variables, those of some conditionals."""
    assert core.step is not None
    assert isinstance(core.model, FactorGraph)
    states, left = core.step.states, core.model
    place = {v: k for k, v in enumerate(places(core))}
    place |= {each.variable: left.num_variables + k for k, each in enumerate(added)}
    factors = []
    for each in added:
        scope = (*each.given, each.variable)
        with np.errstate(divide="ignore"):
            table = np.log(each.table[np.ix_(*(states[v] for v in scope))])
        factors.append(Factor(tuple(place[v] for v in scope), table))
    cardinalities = (*left.cardinalities, *(len(states[each.variable]) for each in added))
    return FactorGraph(cardinalities, (*left.factors, *factors), left.log_constant, left.name)

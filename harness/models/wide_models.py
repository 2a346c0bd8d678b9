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
from spinbench.models.simplification import Simplification, compute_simplification

# Larger than the number of variables of any factor.
MAX_PARENTS = 64
# Largest number of subgraphs that are solved; marginals that they do not contain stay open.
MAX_ATTEMPTS = 64

# Computes the marginals of all variables of a model; raises IntractableError if its width is too large.
Solve = Callable[[FactorGraph], list[FloatArray]]


def extract_core(model: FactorGraph) -> Simplification:
    """What is left once all that sums out is gone, given however many others."""
    return compute_simplification(model, MAX_PARENTS)


def marginals(core: Simplification, core_marginals: list[FloatArray], solve: Solve) -> list[FloatArray]:
    """The marginals of all variables of the model that `core` is left of; NaN where they are out of reach.

    Args:
        core: from `extract_core`.
        core_marginals: the marginals of its variables.
        solve: what parts are given to.
    """
    assert core.step is not None
    # an empty core has one dummy variable
    marginals_by_variable = dict(zip(core_variables(core), core_marginals, strict=False))
    conditionals = {each.variable: each for each in core.step.conditionals}
    marginals_by_variable |= _solve_summed_out(core, conditionals, solve)
    full: list[FloatArray] = []
    for v, (size, states) in enumerate(zip(core.step.cardinalities, core.step.states, strict=True)):
        if len(states) == size and v in marginals_by_variable:
            full.append(marginals_by_variable[v])
            continue
        vector = np.zeros(size)
        if len(states) == 1:
            vector[states[0]] = 1.0
        elif v in marginals_by_variable:
            vector[list(states)] = marginals_by_variable[v]
        else:
            vector[:] = np.nan
        full.append(vector)
    return full


def _solve_summed_out(
    core: Simplification, conditionals: Mapping[int, Conditional], solve: Solve
) -> dict[int, FloatArray]:
    """Over the possible states of those that are in reach. Groups that are too wide are halved."""
    assert core.step is not None
    beyond: set[int] = set()
    marginals_by_variable = {
        v: each.table if each.table.size == len(core.step.states[v]) else each.table[list(core.step.states[v])]
        for v, each in conditionals.items()
        if not each.parents
    }
    groups, attempts = [[v for v, each in conditionals.items() if each.parents]], 0  # ancestors before descendants
    while groups and attempts < MAX_ATTEMPTS:
        group = [v for v in groups.pop() if v not in marginals_by_variable]
        group = [v for v in group if beyond.isdisjoint(_ancestors([v], conditionals))]
        if not group:
            continue
        ancestry = _ancestors(group, conditionals)
        attempts += 1
        try:
            part_marginals = solve(_core_with_conditionals(core, [conditionals[v] for v in ancestry]))
        except IntractableError:
            middle = len(group) // 2
            if middle:
                groups += [group[middle:], group[:middle]]
            else:
                beyond.add(group[0])
            continue
        marginals_by_variable |= dict(zip(ancestry, part_marginals[-len(ancestry) :], strict=True))
    return marginals_by_variable


def _ancestors(variables: Iterable[int], conditionals: Mapping[int, Conditional]) -> list[int]:
    """These and all that they are given, directly or not, of those that sum out; ascending."""
    ancestors, waiting = set(variables), list(variables)
    while waiting:
        for u in conditionals[waiting.pop()].parents:
            if u in conditionals and u not in ancestors:
                ancestors.add(u)
                waiting.append(u)
    return sorted(ancestors)


def core_variables(core: Simplification) -> list[int]:
    """The variables of the model that the core's are."""
    assert core.step is not None
    return [v for v, units in enumerate(core.step.variables) if units]


def _core_with_conditionals(core: Simplification, conditionals: list[Conditional]) -> FactorGraph:
    """The core and, behind its variables, those of some conditionals."""
    assert core.step is not None
    assert isinstance(core.model, FactorGraph)
    states, left = core.step.states, core.model
    place = {v: k for k, v in enumerate(core_variables(core))}
    place |= {each.variable: left.num_variables + k for k, each in enumerate(conditionals)}
    factors = []
    for each in conditionals:
        scope = (*each.parents, each.variable)
        with np.errstate(divide="ignore"):
            table = np.log(each.table[np.ix_(*(states[v] for v in scope))])
        # Zeros of merged tables may leave a parent one state after its child has summed out.
        several = [v for v in scope if v in place]
        factors.append(Factor(tuple(place[v] for v in several), table.reshape([len(states[v]) for v in several])))
    cardinalities = (*left.cardinalities, *(len(states[each.variable]) for each in conditionals))
    return FactorGraph(cardinalities, (*left.factors, *factors), left.log_constant, left.name)

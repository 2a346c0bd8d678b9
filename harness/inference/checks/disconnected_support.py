"""Islands: states of positive weight that a run has never been near, because hard zeros part them from its chains.

Chains that all began on one side of hard zeros agree, whatever R-hat is, and populations that are cooled towards a wide
set may lose a narrow one. So where a model has zeros, further starts of positive weight are drawn, independent of the
run's, and swept a little, one variable at a time. Most of them lie where there is no weight: the law of a chain that
has forgotten all but its island has E[log p*] + Σ_v H(p_v) >= log Z of the island, which may be negligible beside the
run's. Where it is not, and the run takes some state that is seen there for impossible, the run is not believed.

A chain that changes one variable at a time never leaves the connected component that it starts in, so that how much it
makes of each is what its starts do. Of few states all components are known, else those that a search from feasible
states finds the ends of; of each the weight is summed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from spinbench.api import Array, Estimate
from spinbench.api.estimate import is_doubted
from spinbench.inference.checks.probes import Content, FloatArray, IntArray, entropies
from spinbench.mathematics import all_states
from spinbench.mathematics.graphs.factor_tables import FactorTables, factor_tables
from spinbench.mathematics.graphs.feasible_starts import feasible_starts
from spinbench.methods.gibbs.host_arrays import HostArrays
from spinbench.methods.tempering.replicas import GraphReplicas, GraphTables, build_graph_tables
from spinbench.models import FactorGraph, Model

# Probes, each from a feasible state of its own.
PROBES = 32
# Sweeps of the probes before recording and while recording.
SWEEPS = 8, 24
# Largest number of variables: finding feasible starts takes too long on larger models.
MOST_VARIABLES = 10_000
# Sweeps of an annealing to the best state, whose weight bounds log Z from below if the run has no estimate of it.
COOLED = 64
# A probe has to exceed the run's probability of a state, error bound included, by this much: a component is another
# place and not a noisy marginal.
APART = 0.5
# A component counts as missed if its upper bound exceeds this many times the weight that the run allows for: on small
# models the bound is up to three times too large.
TIMES = 4.0
# Probability of a state that all states of a component share: there the component's lower bound alone may exceed what
# the run allows.
SURE = 1 - 1e-9
# Added to the run's seed: probes that start from the run's own initial states would see the same components.
_OTHERS = 2**40
# Largest number of states for which all components are found by enumeration.
MAX_ENUMERATED = 2**16
# Largest number of variables of a model that is searched.
MAX_VARIABLES = 200
# Largest number of states of a component that a search explores completely.
MAX_COMPONENT = 256
# Limit of factor evaluations of a search (factors times states).
MAX_WORK = 2.0**22
STARTS = 32


class Probes(NamedTuple):
    """Of each probe.

    Attributes:
        p: (S, P) probabilities of all states; mean: (P,) E[log p*].
        upper: (P,) log Z of its island at most; least: (P,) at least: of all states that it has been in.
    """

    p: FloatArray
    mean: FloatArray
    upper: FloatArray
    least: FloatArray


def flag_disconnected_support(
    model: Model, seed: int, estimate: Estimate, *, single_site: bool = False
) -> tuple[str, ...]:
    """Flags of an estimate where any probe is in a place that the run rules out, and that may weigh more than the run
    allows for; probes are sent where it would be believed.

    Args:
        model: of the run.
        seed: of the run; probes start elsewhere.
        estimate: of the run.
        single_site: whether its chains change one variable at a time, so that components of the support that no such
            change joins have the weights that their starts have, and not their own.
    """
    parted = isinstance(model, FactorGraph) and model.has_zeros and model.num_variables <= MOST_VARIABLES
    settled = estimate.log_z_kind == "exact" or (is_doubted(estimate, "marginals") and is_doubted(estimate, "log Z"))
    if not parted or settled or estimate.marginals is None or estimate.marginals_error_bound is None:
        return ()
    probes = _send_probes(Content(model), seed + _OTHERS)
    whole = estimate.log_z
    if whole is None or is_doubted(estimate, "log Z"):
        whole = max(float(probes.mean.max()), _cool(Content(model), seed + _OTHERS))
    upper, least = (_share(log_z - whole) for log_z in (probes.upper, probes.least))
    p = all_states.marginals_of_all_states(estimate.marginals)
    allowed = all_states.errors_of_all_states(estimate.marginals_error_bound)
    unseen, at_most = (p <= allowed)[:, None], (p + allowed)[:, None]
    beyond = (probes.p - at_most > APART) & (upper > TIMES * at_most)
    missed = bool((unseen & beyond | (probes.p > SURE) & (least > at_most)).any())
    if single_site and not missed:
        # log Z of the component with the largest upper bound.
        rest, error = float(probes.upper.max()), np.inf
        if estimate.log_z is not None and not is_doubted(estimate, "log Z"):
            rest, error = estimate.log_z, estimate.log_z_error_bound or 0.0
        missed = _misweighs(separate_components(Content(model), seed + _OTHERS), rest, error, p, allowed)
    return ("marginals not mixed", "log Z unresolved") if missed else ()


def _misweighs(components: Sequence[Component], log_z: float, error: float, p: FloatArray, allowed: FloatArray) -> bool:
    """Whether a component changes a marginal or log Z by more than is claimed, as it would where no chain is in it.

    Args:
        components: that no chain leaves or enters.
        log_z, error: of the run, and what it may be off; or log Z of the widest component, and infinity.
        p, allowed: (S,) the run's probabilities of all states, and what they may be off.
    """
    shares = [float(_share(np.array(component.log_weight - log_z))) for component in components]
    return any(
        bool(share > error + 1e-6 or (share * np.abs(component.law - p) > allowed + 1e-6).any())
        for share, component in zip(shares, components, strict=True)
    )


@lru_cache(maxsize=16)
def _send_probes(content: Content, seed: int) -> Probes:
    flat, tables, replicas, x = _start(content.model, seed)
    rng, betas = np.random.default_rng(seed), np.ones(PROBES)
    total, energy = np.zeros(1), np.zeros(PROBES)
    visited: list[dict[bytes, float]] = [{} for _ in range(PROBES)]
    for sweep in range(sum(SWEEPS)):
        x, p = replicas.sweep(rng, tables, x, betas)
        if sweep >= SWEEPS[0]:
            logs = np.asarray(replicas.log_weights(tables, x)[0])
            total, energy = total + np.asarray(p), energy + logs
            for log_weights, state, log in zip(visited, np.asarray(x).T, logs.tolist(), strict=True):
                log_weights[state.tobytes()] = log
    p = all_states.of_reported(content.model.cardinalities, total / SWEEPS[1])
    mean = energy / SWEEPS[1] + flat.log_constant
    least = np.array([np.logaddexp.reduce(list(log_weights.values())) for log_weights in visited]) + flat.log_constant
    return Probes(p, mean, mean + entropies(p), least)


@lru_cache(maxsize=16)
def _cool(content: Content, seed: int) -> float:
    """log p* of the best state that cooling leads to: log Z is no less, nor than E[log p*] of any law."""
    flat, tables, replicas, x = _start(content.model, seed)
    rng = np.random.default_rng(seed)
    for beta in np.linspace(0.0, 1.0, COOLED, endpoint=False):
        x, _ = replicas.sweep(rng, tables, x, np.full(PROBES, beta))
    values, lost = replicas.log_weights(tables, x)
    return float(np.where(np.asarray(lost) > 0, -np.inf, np.asarray(values)).max() + flat.log_constant)


def _start(model: Model, seed: int) -> tuple[FactorTables, GraphTables, GraphReplicas, Array]:
    """Tables, what sweeps them, and states of positive weight."""
    assert isinstance(model, FactorGraph)
    flat, replicas = factor_tables(model), GraphReplicas(HostArrays())
    tables = build_graph_tables(flat)
    start = feasible_starts(model, PROBES, seed).astype(np.float64)
    return flat, tables, replicas, replicas.arrange_states(tables, start)


def _share(log_ratio: FloatArray) -> FloatArray:
    """w / (1 + w)."""
    weight = np.exp(np.minimum(log_ratio, 500.0))
    return np.asarray(weight / (1 + weight))


class Component(NamedTuple):
    """Of states that single changes lead to from each other.

    Attributes:
        log_weight: of all of them together.
        law: (S,) probabilities of all states of all variables among them.
    """

    log_weight: float
    law: FloatArray


@lru_cache(maxsize=16)
def separate_components(content: Content, seed: int) -> tuple[Component, ...]:
    """Components whose states are all known, the largest of a model that is enumerated left out; empty where the
    support is in one, as far as is seen."""
    model = content.model
    assert isinstance(model, FactorGraph)
    if math.prod(model.cardinalities) <= MAX_ENUMERATED:
        return _enumerate_components(model)
    if model.num_variables <= MAX_VARIABLES:
        return _search_components(model, seed)
    return ()


def _enumerate_components(model: FactorGraph) -> tuple[Component, ...]:
    from scipy import sparse

    sizes = model.cardinalities
    states = np.indices(sizes).reshape(len(sizes), -1)
    logs = model.log_weight(states.T)
    possible, places = (logs > -np.inf).reshape(sizes), np.arange(logs.size).reshape(sizes)
    ends = []
    for axis, size in enumerate(sizes):
        for first in range(size):
            for second in range(first + 1, size):
                both = np.take(possible, first, axis) & np.take(possible, second, axis)
                ends.append(np.stack([np.take(places, k, axis)[both] for k in (first, second)]))
    pairs = np.concatenate(ends, axis=1)
    graph = sparse.coo_array((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), shape=(logs.size,) * 2)
    _, part = sparse.csgraph.connected_components(graph, directed=False)
    is_possible = possible.ravel()
    names, counts = np.unique(part[is_possible], return_counts=True)
    others = np.delete(names, int(counts.argmax()))
    return tuple(
        _component(states.T[is_possible & (part == name)], logs[is_possible & (part == name)], sizes) for name in others
    )


def _search_components(model: FactorGraph, seed: int) -> tuple[Component, ...]:
    starts = np.unique(np.asarray(feasible_starts(model, STARTS, seed)).T, axis=0)
    components: list[Component] = []
    visited: set[bytes] = set()
    outside, left = 0, MAX_WORK / max(len(model.factors), 1)
    for start in starts.astype(np.int64):
        if start.tobytes() in visited:
            continue
        reachable, left = _reachable_states(model, start, left)
        if reachable is None:
            outside += 1
        else:
            visited |= {state.tobytes() for state in reachable}
            components.append(_component(reachable, model.log_weight(reachable), model.cardinalities))
        if left <= 0:
            break
    if len(components) == 1 and not outside:
        return ()
    return tuple(components)


def _reachable_states(model: FactorGraph, start: IntArray, left: float) -> tuple[IntArray | None, float]:
    """All states that single changes lead to from one, or None where they are too many; and what work is left."""
    reachable, waiting = {start.tobytes(): start}, [start]
    while waiting and left > 0:
        near = _neighbours(waiting.pop(), model.cardinalities)
        left -= len(near)
        for state in near[model.log_weight(near) > -np.inf]:
            if state.tobytes() not in reachable:
                reachable[state.tobytes()] = state
                waiting.append(state)
        if len(reachable) > MAX_COMPONENT:
            return None, left
    return (None if waiting else np.array(list(reachable.values()))), left


def _neighbours(state: IntArray, sizes: tuple[int, ...]) -> IntArray:
    """(Σ (K - 1), N) states that differ in one variable."""
    variables = np.repeat(np.arange(len(sizes)), np.array(sizes) - 1)
    shifts = np.concatenate([np.arange(1, size) for size in sizes])
    near = np.tile(state, (len(variables), 1))
    near[np.arange(len(variables)), variables] = (state[variables] + shifts) % np.array(sizes)[variables]
    return near


def _component(states: IntArray, logs: FloatArray, sizes: tuple[int, ...]) -> Component:
    top = float(logs.max())
    weights = np.exp(logs - top)
    laws = [np.bincount(column, weights, size) for column, size in zip(states.T, sizes, strict=True)]
    return Component(top + math.log(weights.sum()), np.concatenate(laws) / weights.sum())

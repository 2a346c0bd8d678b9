"""What wrong marginals of a small model are right of: a model with couplings that count twice, another temperature, …

A check that finds wrong marginals compares them with those of each such law, and names the one that fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.models import Factor, FactorGraph, Model, PairwiseModel
from spinbench.testing.laws.cases import FloatArray, indicators

# Largest number of states, which are summed over repeatedly.
MAX_STATES = 2**14
# Largest distance of a suspected law's marginals, relative to that of the right law; the same for a suspected law with
# a fitted parameter.
MAX_SHARE, MAX_FITTED_SHARE = 0.25, 0.1
# Inverse temperatures that are tried besides 1.
BETAS = np.exp(np.linspace(-1.5, 1.5, 601))
# Probability up to which a state counts as impossible, for rounding.
CERTAIN = 1e-12
# Sweeps in which the chains of a wrong sampler of some variables forget their start.
SWEEPS = 50
# (factor on a term, what is said of one such term, of several).
FACTORS = (
    (0.0, "does not count", "do not count"),
    (0.5, "counts half", "count half"),
    (2.0, "counts twice", "count twice"),
    (-1.0, "has the other sign", "have the other sign"),
)


class _Term(NamedTuple):
    """A part of the log weight: its variables, its name, and its values (S,) in all states."""

    scope: tuple[int, ...]
    name: str
    values: FloatArray


def describe_cause(
    model: Model, states: npt.NDArray[np.integer], wrong_marginals: FloatArray, exact: FloatArray, allowed: FloatArray
) -> str:
    """ "; they are those of a law in which …", or "" where none that is known here fits.

    Args:
        model: small, as it was given.
        states: (S, N), all of them.
        found, exact: wrong and right marginals, p(s_i = 1) or all states' one variable after another.
        allowed: of each, what chance and rounding allow.
    """
    if len(states) > MAX_STATES or not np.isfinite(wrong_marginals).all():
        return ""
    binary = wrong_marginals.size == states.shape[1]
    if (reordering := _describe_reordering(states, wrong_marginals, exact, allowed, binary)) is not None:
        return reordering
    counted = indicators(states, binary)
    worst = float((np.abs(wrong_marginals - exact) / allowed).max())
    best, limit = "", MAX_SHARE * worst
    tried = (
        (MAX_SHARE, _laws_with_mistakes(model, states)),
        (MAX_FITTED_SHARE, _log_weights_at_temperatures(model, states)),
    )
    for share, name, weights in ((share, *law) for share, laws in tried for law in laws):
        top = weights.max()
        if not np.isfinite(top):
            continue
        p = np.exp(weights - top)
        off = float((np.abs(wrong_marginals - (p / p.sum()) @ counted) / allowed).max())
        if off <= 1 and off < min(limit, share * worst):
            best, limit = name, off
    return best and f"; they are those of a law in which {best}"


def _describe_reordering(
    states: npt.NDArray[np.integer], wrong_marginals: FloatArray, exact: FloatArray, allowed: FloatArray, binary: bool
) -> str | None:
    """Right numbers at wrong places."""
    sizes = np.ones(states.shape[1], dtype=np.int64) if binary else states.max(axis=0) + 1
    ends = np.cumsum(sizes)
    parts = np.split(exact, ends[:-1])
    candidates = {}
    if binary:
        candidates["p(s = 0) in place of p(s = 1)"] = 1 - exact
    candidates["those of the variables in reverse order"] = np.concatenate(parts[::-1])
    certain = [(np.minimum(p, 1 - p) < CERTAIN).all() for p in parts]
    uniform = [
        np.full(p.size, 1 / max(p.size, 2)) if is_certain else p for p, is_certain in zip(parts, certain, strict=True)
    ]
    candidates["the right ones, but uniform where a state is certain"] = np.concatenate(uniform)
    low, high = wrong_marginals.min(), wrong_marginals.max()
    candidates[f"the right ones, but none below {low:.3g} or above {high:.3g}"] = np.clip(exact, low, high)
    if not binary:
        candidates["those of each variable's states in reverse order"] = np.concatenate([p[::-1] for p in parts])
        even = [np.full(p.size, 1 / p.size) if p.size > 2 else p for p in parts]
        candidates["the same for all states of a variable of more than two"] = np.concatenate(even)
    for name, other in candidates.items():
        if (np.abs(wrong_marginals - other) <= allowed).all():
            return f"; they are {name}"
    return None


def _laws_with_mistakes(model: Model, states: npt.NDArray[np.integer]) -> Iterator[tuple[str, FloatArray]]:
    """(what would have to be wrong, log weights (S,)) of laws that simple mistakes have."""
    terms = list(_split_log_weight(model, states))
    fields, pairs = ([t for t in terms if (len(t.scope) < 2) == single] for single in (True, False))
    whole = sum((t.values for t in terms), np.zeros(len(states)))
    yield "all states are equally likely", np.where(np.isfinite(whole), 0.0, -np.inf)
    for factor, singular, plural in FACTORS:
        for group, name in ((pairs, "couplings"), (fields, "fields")):
            if len(group) > 1:
                yield f"{name} {plural}", _scale_terms(terms, group, factor)
        for term in terms:
            yield f"{term.name} {singular}", _scale_terms(terms, [term], factor)
        for v in range(states.shape[1]):
            incident = [t for t in pairs if v in t.scope]
            if 1 < len(incident) < len(pairs):
                yield f"the couplings of variable {v} {plural}", _scale_terms(terms, incident, factor)
    yield from _laws_with_state_mistakes(states, whole)
    if isinstance(model, FactorGraph):
        yield "the tables of pairs are transposed", _transpose_tables(model).log_weight(states)
    elif not model.groups:
        couplings = model.dense()
        drive = model.biases + states @ couplings
        yield "all variables are drawn at once", states @ model.biases + np.logaddexp(0, drive).sum(axis=1)
        for name, half in (("first", np.triu(couplings)), ("second", np.tril(couplings))):
            yield f"couplings count for the {name} variable of a pair alone", _sweep_log_weights(model, states, half)


def _transpose_tables(model: FactorGraph) -> FactorGraph:
    """With those tables of two variables transposed that are square."""
    factors = [
        Factor(f.scope, np.ascontiguousarray(f.log_table.T))
        if f.log_table.ndim == 2 and len(set(f.log_table.shape)) == 1
        else f
        for f in model.factors
    ]
    return FactorGraph(model.cardinalities, factors)


def _sweep_log_weights(model: PairwiseModel, states: npt.NDArray[np.integer], couplings: FloatArray) -> FloatArray:
    """Log probabilities after sweeps over the variables in their order, each drawn from its own row of couplings.

    Args:
        model: for its biases.
        states: (S, N), all, the first variable's changing fastest.
        couplings: (N, N), which need not be symmetric.
    """
    p, places = np.full(len(states), 1 / len(states)), np.arange(len(states))
    drive = model.biases + states @ couplings.T
    log_conditionals = -np.logaddexp(0, np.where(states == 1, -drive, drive))
    for _ in range(SWEEPS):
        for v in range(states.shape[1]):
            p = (p + p[places ^ (1 << v)]) * np.exp(log_conditionals[:, v])
    log_p: FloatArray = np.log(np.maximum(p, np.finfo(np.float64).tiny))
    return log_p


def _log_weights_at_temperatures(model: Model, states: npt.NDArray[np.integer]) -> Iterator[tuple[str, FloatArray]]:
    """As `_laws_with_mistakes`, of a number that is fitted."""
    whole = sum((t.values for t in _split_log_weight(model, states)), np.zeros(len(states)))
    for beta in BETAS[BETAS != 1]:
        yield f"the inverse temperature is about {beta:.2g}", beta * whole


def _laws_with_state_mistakes(states: npt.NDArray[np.integer], whole: FloatArray) -> Iterator[tuple[str, FloatArray]]:
    """Mistakes that are alike for every variable of several states."""
    num_states = int(states.max()) + 1
    for k in range(1, num_states):
        yield f"states from {k} on never happen", np.where((states < k).all(axis=1), whole, -np.inf)
    for k in range(num_states):
        count = ((states == k) & (states.max(axis=0) > 1)).sum(axis=1)
        yield f"state {k} counts twice", whole + np.log(2) * count
        yield f"state {k} never happens", np.where(count == 0, whole, -np.inf)


def _scale_terms(terms: list[_Term], chosen: list[_Term], factor: float) -> FloatArray:
    """Log weights with some terms times a factor; what has no weight keeps none."""
    total = np.zeros(len(terms[0].values))
    for term in terms:
        times = factor if any(term is other for other in chosen) else 1.0
        finite = np.isfinite(term.values)
        total = total + np.where(finite, times * np.where(finite, term.values, 0.0), term.values)
    return np.asarray(total)


def _split_log_weight(model: Model, states: npt.NDArray[np.integer]) -> Iterator[_Term]:
    """Fields and couplings, or factors."""
    if isinstance(model, FactorGraph):
        for factor in model.factors:
            scope = tuple(int(v) for v in factor.scope)
            values = np.asarray(factor.log_table)[tuple(states[:, v] for v in scope)]
            variables = ", ".join(map(str, scope))
            noun = "variables" if len(scope) > 1 else "variable"
            yield _Term(scope, f"the factor of {noun} {variables}", values)
        return
    assert isinstance(model, PairwiseModel)
    for i, bias in enumerate(model.biases):
        yield _Term((i,), f"the field of variable {i}", bias * states[:, i])
    for (i, j), coupling in zip(model.edges.tolist(), model.couplings, strict=True):
        yield _Term((i, j), f"the coupling of variables {i} and {j}", coupling * states[:, i] * states[:, j])

"""Exact joint probabilities of a few variables, all others summed out: marginal MAP and conditional probabilities."""

from __future__ import annotations

import contextlib
import itertools
import math
import textwrap
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spinbench import reference
from spinbench.errors import IntractableError, ModelError
from spinbench.inference import answers
from spinbench.inference.request import check_model
from spinbench.models import Factor, FactorGraph, Model, Origin, to_factor_graph
from spinbench.models.evidence import condition
from spinbench.models.names import Names

# Entries of the largest table that is returned: 8 MiB.
MAX_ENTRIES = 2**20
# States each of which may take an exact log Z of its own, by slices or counting, where elimination is too wide:
# a tenth of a second each makes half a minute.
MAX_SOLVED = 2**8


@dataclass(frozen=True)
class Joint:
    """Of some variables.

    Attributes:
        variables: their labels, or numbers.
        states: names of the states of each, or their numbers.
        probabilities: (K_1, …, K_n) float64, of all their states; they add up to 1.
    """

    variables: tuple[Hashable, ...]
    states: tuple[tuple[Hashable, ...], ...]
    probabilities: npt.NDArray[np.float64]

    def most_probable(self) -> Iterator[tuple[dict[Hashable, Hashable], float]]:
        """States {variable: state} and their probabilities, the most probable first: this one is the marginal MAP."""
        order = np.argsort(-self.probabilities, axis=None, kind="stable")
        for k in order.tolist():
            places = np.unravel_index(k, self.probabilities.shape)
            named = (names[place] for names, place in zip(self.states, places, strict=True))
            yield dict(zip(self.variables, named, strict=True)), float(self.probabilities.flat[k])

    def conditional(self, *variables: Hashable) -> npt.NDArray[np.float64]:
        """(K_1, …, K_n) float64: the same table given the states of these variables, NaN where they have probability 0.

        Raises:
            ModelError: a variable that is none of these.
        """
        if unknown := [each for each in variables if each not in self.variables]:
            raise ModelError(f"{unknown[0]!r} was given; the variables are {', '.join(map(repr, self.variables))}")
        summed = tuple(k for k, each in enumerate(self.variables) if each not in variables)
        totals = self.probabilities.sum(axis=summed, keepdims=True)
        with np.errstate(invalid="ignore"):
            quotients: npt.NDArray[np.float64] = self.probabilities / totals
        return quotients


def joint(model: Model, variables: Sequence[Hashable], *, max_gib: float | None = None) -> Joint:
    """Exact probabilities of all states of a few variables, by elimination (Koller and Friedman, "Probabilistic
    graphical models", 2009, section 9.3), or where that is too wide by log Z of each state.

    Args:
        model: any model.
        variables: by label, or by number where they have no labels; at most 2^20 states together.
        max_gib: memory that elimination may take, in GiB; None: half of what is free, container limits counted.

    Raises:
        IntractableError: too wide for the memory.
        ModelError: Z = 0; no variable, one that there is not or that is named twice; too many states.
    """
    check_model(model)
    graph = to_factor_graph(model)
    origin = graph.origin or Origin.identity(graph.cardinalities, graph.labels)
    numbers = {label: v for v, label in enumerate(origin.labels or range(origin.num_variables))}
    if isinstance(variables, str) or not isinstance(variables, Sequence):
        raise ModelError(f"variables={variables!r} was given; a list of labels or numbers is needed")
    for each in variables:
        if not isinstance(each, Hashable) or each not in numbers:
            listed = textwrap.shorten(", ".join(map(str, itertools.islice(numbers, 100))), 60, placeholder=" …")
            raise ModelError(f"{model.name}: no variable is named {each!r}; there are {listed}")
    indices = [numbers[each] for each in variables]
    shape = tuple(origin.cardinalities[v] for v in indices)
    if not indices or len(set(indices)) < len(indices) or math.prod(shape) > MAX_ENTRIES:
        raise ModelError(
            f"{model.name}: {len(indices)} variables of {math.prod(shape)} states were given; one or more are needed, "
            f"each once, and at most {MAX_ENTRIES} states"
        )
    for each, v in zip(variables, indices, strict=True):
        if len(origin.variables[v]) > 1 or (not origin.variables[v] and len(origin.states[v]) > 1):
            raise ModelError(f"{model.name}: variable {each!r} is no variable of the model itself")
    carriers = sorted({unit for v in indices for unit in origin.variables[v]})
    derived = _joint_of(graph, tuple(carriers), answers.bytes_allowed(max_gib))
    places = np.indices(derived.shape)
    # What is observed or follows has one state.
    states = [
        np.array(origin.states[v])[places[carriers.index(*origin.variables[v])] if origin.variables[v] else 0]
        for v in indices
    ]
    probabilities = np.zeros(shape)
    np.add.at(probabilities, tuple(states), derived)
    names = Names.from_model(graph)
    state_names = tuple(tuple(names.state(v, k) for k in range(origin.cardinalities[v])) for v in indices)
    return Joint(tuple(variables), state_names, probabilities)


def _joint_of(graph: FactorGraph, scope: tuple[int, ...], max_bytes: int) -> npt.NDArray[np.float64]:
    """That of variables of the model itself: the table of a factor that changes nothing, or log Z of each state."""
    if not scope:
        return np.ones(())
    shape = tuple(graph.cardinalities[v] for v in scope)
    extended = replace(graph, factors=(*graph.factors, Factor(scope, np.zeros(shape))))
    try:
        return np.asarray(reference.pairs(extended, max_bytes=max_bytes)[-1]).reshape(shape)
    except IntractableError:
        if math.prod(shape) > MAX_SOLVED:
            raise
    logs = np.full(shape, -np.inf)
    labels = graph.labels or range(graph.num_variables)
    for state in np.ndindex(*shape):
        with contextlib.suppress(ModelError):  # a state of probability 0
            observed = condition(graph, {labels[v]: k for v, k in zip(scope, state, strict=True)})
            logs[state] = answers.solve(observed, marginals=False, max_bytes=max_bytes).log_z
    if logs.max() == -np.inf:
        raise ModelError(f"{graph.name}: no state has positive weight, so Z = 0")
    weights = np.exp(logs - logs.max())
    probabilities: npt.NDArray[np.float64] = weights / weights.sum()
    return probabilities

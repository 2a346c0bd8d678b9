"""What a result finds its pairs and its best state in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from spinbench.inference.stored_states.exports import lift_states, lower_states
from spinbench.inference.stored_states.recorder import check_states
from spinbench.mathematics.coordinate_ascent import ascend_to_maxima
from spinbench.models import Model
from spinbench.models.convert import IntArray, original_log_weights
from spinbench.models.names import Names
from spinbench.reference.heaviest import heaviest

if TYPE_CHECKING:
    from spinbench.api.host_arrays import Draws, PairsWithErrors
    from spinbench.inference.marginals import Marginals

Value = TypeVar("Value")
StateAndWeight = tuple[IntArray | None, float | None]

# Number of the heaviest candidates that are improved by changes of single variables.
MAX_RAISED = 16
# Entries of the states that are evaluated in a block.
ENTRIES_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class RunSource:
    """They take time, and are found when somebody asks for them.

    Attributes:
        pairs: joint probabilities and their errors, or what gives both.
        model: that was given to `run`; None: no best state is known.
        method_model: that the method computed with; None: `model`.
        last: (N, C) states of `method_model` in which the chains ended, or what gives them.
        stored: (C, S, M) states that were kept.
        best: the best state and its log weight, where they are known.
        max_bytes: that elimination may take, where the answer is exact, and the best state is, too.
        model_names: of the variables that the user gave, where the model itself is not here.
    """

    pairs: PairsWithErrors | Callable[[], PairsWithErrors] = (None, None)
    model: Model | None = None
    method_model: Model | None = None
    last: np.ndarray | Callable[[], np.ndarray | None] | None = None
    stored: np.ndarray | None = None
    best: StateAndWeight | None = None
    max_bytes: int | None = None
    model_names: Names | None = None

    @property
    def names(self) -> Names:
        """Of the variables that the user gave."""
        if self.model_names is None and self.model is not None:
            return Names.from_model(self.model)
        return self.model_names or Names()

    def find_pairs(self) -> PairsWithErrors:
        """Joint probabilities and their errors."""
        return _evaluate(self.pairs)

    def find_best_state(self, draws: Draws | None, marginals: Marginals | None) -> StateAndWeight:
        """(M,) the heaviest state that is known of the variables that the user gave, and its log weight; None: none.

        Args:
            draws, marginals: of the result, or None.

        Raises:
            InvalidResultError: the chains did not end in states.
        """
        model = self.model
        if self.best is not None or model is None:
            return self.best or (None, None)
        if self.max_bytes is not None:
            state, weight = heaviest(model, max_bytes=self.max_bytes)
            return lift_states(model, state[None])[0], weight
        candidates = [*self._candidates(model, draws, marginals)]
        if not candidates:
            return None, None
        states = np.concatenate(candidates)
        logs = _weigh(model, states)
        heavy = _heaviest(logs)
        _, first = np.unique(states[heavy], axis=0, return_index=True)
        ascended = ascend_to_maxima(model, states[heavy[np.sort(first)[:MAX_RAISED]]].T).T
        best, weight = states[int(logs.argmax())], float(logs.max())
        logs = _weigh(model, ascended)
        if logs.max() > weight:
            best, weight = ascended[int(logs.argmax())], float(logs.max())
        if weight == -np.inf:
            return None, None
        return lift_states(model, best[None])[0], weight

    def _candidates(self, model: Model, draws: Draws | None, marginals: Marginals | None) -> Iterator[IntArray]:
        """(S, N) states of the model."""
        last, method_model = _evaluate(self.last), self.method_model or model
        if last is not None:
            ended = check_states(last, method_model, "a method").T
            yield lower_states(model, lift_states(method_model, ended))
        if self.stored is not None:
            # Chain by chain: states may lie in a file and have 64 bits here.
            for chain in self.stored:
                states = lower_states(model, chain)
                yield states[np.sort(_heaviest(_weigh(model, states)))]
        if draws is not None:
            yield lower_states(model, np.asarray(draws[0]).T)
        if marginals is not None:
            p = marginals.by_variable()
            mode = np.array([int(each.argmax()) for each in p])
            origin = model.origin
            possible = origin is None or all(
                k in states for k, states in zip(mode.tolist(), origin.states, strict=True)
            )
            if possible and all(np.isfinite(each).all() for each in p):
                yield lower_states(model, mode[None])

    def __getstate__(self) -> dict[str, object]:
        """With the states themselves: what makes them need not be known to another process."""
        return {**vars(self), "last": _evaluate(self.last)}


def _evaluate(value: Value | Callable[[], Value]) -> Value:
    if callable(value):
        return value()
    return value


def _heaviest(logs: npt.NDArray[np.float64]) -> IntArray:
    """The rows of those that may be raised, and of their repetitions, the heaviest first."""
    return np.argsort(-logs, kind="stable")[: 4 * MAX_RAISED]


def _weigh(model: Model, states: IntArray) -> npt.NDArray[np.float64]:
    rows = max(ENTRIES_AT_ONCE // max(states.shape[1], 1), 1)
    parts = [original_log_weights(model, states[k : k + rows]) for k in range(0, len(states), rows)]
    return np.concatenate([np.zeros(0), *parts])

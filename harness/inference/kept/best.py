"""The heaviest state that an answer knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.inference.kept.checked import checked_states
from spinbench.inference.kept.exports import Kept
from spinbench.mathematics.coordinate_ascent import raised
from spinbench.models import Model, Origin
from spinbench.models.convert import log_weights_as_given
from spinbench.reference.heaviest import heaviest

IntArray = npt.NDArray[np.int64]
Found = tuple[IntArray | None, float | None]

RAISED = 16
"""Candidates that are raised by changes of single variables, the heaviest ones."""
AT_ONCE = 2**22
"""Entries of the states that are weighed in one go."""


class Best:
    """Looked for when it is first asked for: weighing states takes time, and most answers are not asked."""

    def __init__(
        self,
        model: Model,
        taken: Model | None = None,
        last: Callable[[], Any] = lambda: None,
        *,
        exact: int | None = None,
    ) -> None:
        """Of an answer.

        Args:
            model: that was given to `run`.
            taken: that the method computed with; `model` by default.
            last: gives (N, C) states of `taken` in which the chains ended, or None.
            exact: bytes that elimination may take, where the answer is exact: the state is, too, then.
        """
        self._model, self._taken = model, model if taken is None else taken
        self._last, self._exact = last, exact
        self._found: Found | None = None

    @classmethod
    def known(cls, model: Model, state: IntArray | None) -> Best:
        """Of a state (M,) of the variables that the user gave, or none."""
        best = cls(model)
        weight = None if state is None else float(log_weights_as_given(model, best._lowered(state)))
        best._found = state, weight
        return best

    def __getstate__(self) -> dict[str, Any]:
        """With the states themselves: what makes them need not be known to another process."""
        states = self._last()
        return {**vars(self), "_last": _Known(states)}

    def found(self, marginals: Any, draws: tuple[Any, Any] | None, kept: Kept | None) -> Found:
        """(M,) states of the variables that the user gave and their log weight; None where none of weight is known.

        Args:
            marginals, draws, kept: of the result.

        Raises:
            IntractableError: the answer is exact, and maxima do not fit where sums did.
            InvalidResultError: the chains did not end in states.
        """
        if self._found is None:
            if self._exact is not None:
                state, weight = heaviest(self._model, max_bytes=self._exact)
                self._found = self._lifted(state[None])[0], weight
            else:
                self._found = self._heaviest([*self._candidates(marginals, draws, kept)])
        return self._found

    def _candidates(self, marginals: Any, draws: tuple[Any, Any] | None, kept: Kept | None) -> Iterator[IntArray]:
        """(S, N) states of the model."""
        last = self._last()
        if last is not None:
            yield self._lowered(_up(self._taken.origin, checked_states(last, self._taken, "a method").T))
        if kept is not None:
            for chain in kept.states:  # one after another: they may be in a file, and are 64 bits wide here
                states = self._lowered(chain)
                yield states[np.sort(np.argsort(-self._weights(states), kind="stable")[: 4 * RAISED])]
        if draws is not None:
            yield self._lowered(np.asarray(draws[0]).T)
        if marginals is not None:
            p = marginals.by_variable()
            if all(np.isfinite(each).all() for each in p):
                mode = np.array([int(each.argmax()) for each in p])
                if _possible(self._model.origin, mode):
                    yield self._lowered(mode[None])

    def _heaviest(self, candidates: list[IntArray]) -> Found:
        if not candidates:
            return None, None
        states = np.concatenate(candidates)
        logs = self._weights(states)
        best = int(logs.argmax())
        state, weight = states[best], float(logs[best])
        found = raised(self._model, _heavy(states, logs).T).T
        weights = self._weights(found)
        if weights.max() > weight:
            state, weight = found[int(weights.argmax())], float(weights.max())
        return (None, None) if weight == -np.inf else (self._lifted(state[None])[0], weight)

    def _weights(self, states: IntArray) -> npt.NDArray[np.float64]:
        rows = max(AT_ONCE // max(states.shape[1], 1), 1)
        parts = [log_weights_as_given(self._model, states[k : k + rows]) for k in range(0, len(states), rows)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _lowered(self, states: npt.NDArray[Any]) -> IntArray:
        origin = self._model.origin
        return np.asarray(states, dtype=np.int64) if origin is None else origin.lower(states)

    def _lifted(self, states: IntArray) -> IntArray:
        return _up(self._model.origin, states)


def _heavy(states: IntArray, logs: npt.NDArray[np.float64]) -> IntArray:
    """The heaviest of them, each once."""
    heavy = np.argsort(-logs, kind="stable")[: 4 * RAISED]
    _, first = np.unique(states[heavy], axis=0, return_index=True)
    return states[heavy[np.sort(first)[:RAISED]]]


class _Known:
    """A function that gives what is known."""

    def __init__(self, states: Any) -> None:
        self._states = states

    def __call__(self) -> Any:
        return self._states


def _up(origin: Origin | None, states: npt.NDArray[Any]) -> IntArray:
    return np.asarray(states, dtype=np.int64) if origin is None else origin.lift(states)


def _possible(origin: Origin | None, state: IntArray) -> bool:
    return origin is None or all(int(k) in labels for k, labels in zip(state, origin.states, strict=True))


def ended_in(engine: Any, state: Any) -> Callable[[], Any]:
    """What gives the states of chains: at once, or where that would be compiled for it, when it is asked."""
    if state is None or not hasattr(engine, "states"):
        return _Known(None)
    if getattr(engine, "compiles", False):
        return lambda: engine.states(state)
    return _Known(engine.states(state))

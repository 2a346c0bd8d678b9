"""What a result finds its pairs and its best state in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spinbench.inference.stored_states.best_state import StateAndWeight, find_best_state
from spinbench.models import Model
from spinbench.reference.heaviest import heaviest


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
    """

    pairs: tuple[Any, Any] | Callable[[], tuple[Any, Any]] = (None, None)
    model: Model | None = None
    method_model: Model | None = None
    last: Any = None
    stored: Any = None
    best: StateAndWeight | None = None
    max_bytes: int | None = None

    def find_pairs(self) -> tuple[Any, Any]:
        """Joint probabilities and their errors."""
        pairs: tuple[Any, Any] = _evaluate(self.pairs)
        return pairs

    def find_best_state(self, draws: Any, marginals: Any) -> StateAndWeight:
        """The best state that is known, or found among these draws and near these marginals, and its log weight."""
        if self.best is not None or self.model is None:
            return self.best or (None, None)
        if self.max_bytes is not None:
            state, weight = heaviest(self.model, max_bytes=self.max_bytes)
            return (state if self.model.origin is None else self.model.origin.lift(state[None])[0]), weight
        method_model = self.model if self.method_model is None else self.method_model
        return find_best_state(self.model, method_model, _evaluate(self.last), self.stored, draws, marginals)

    def __getstate__(self) -> dict[str, Any]:
        """With the states themselves: what makes them need not be known to another process."""
        return {**vars(self), "last": _evaluate(self.last)}


def _evaluate(value: Any) -> Any:
    return value() if callable(value) else value

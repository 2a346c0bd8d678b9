"""States of chains, evenly spaced, taken while a run goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spinbench.api import Engine, Reduction, State
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.inference.budget import Budget
from spinbench.inference.kept.checked import checked_states
from spinbench.inference.kept.exports import labels_of
from spinbench.inference.kept.files import check_room, told_if_interrupted, write
from spinbench.inference.kept.shelves import InMemory, OnDisk, UnsignedArray
from spinbench.models import Model

Statistics = dict[str, np.ndarray]
MAX_BYTES = 8 * 2**30
AT_ONCE = 16
"""States of each chain that are made those of the user's variables together."""


class Keeping:
    """An engine that keeps states of its chains, from the end of burn-in on, and is another one in all else.

    Batches are cut where a state is kept, and put together again. Where it is not known how many steps there will be,
    all states are kept at first, and of twice as many as are wanted every other one goes.

    Raises:
        UnsupportedError: the engine hands over no states.
        SpinbenchError: they would take more than 8 GiB.
    """

    def __init__(
        self,
        engine: Engine,
        reductions: Mapping[str, Reduction],
        model: Model,
        start: np.ndarray,
        budget: Budget,
        keep: int,
        who: str,
        file: Path | None = None,
    ) -> None:
        """Of a run.

        Args:
            engine, reductions: of the method.
            model: that it computes with.
            start: (N, C) states.
            budget: of the run.
            keep: states of each chain.
            who: method and backend, for the messages.
            file: in which they end, and beside which they lie until then; None: in memory.
        """
        if engine.states(engine.init(0, start)) is None:
            raise UnsupportedError(f"keep={keep} was given; {who} hands over no states that its chains are in")
        self._small = _smallest(model.cardinalities)
        size = min(keep, budget.samples or keep) * start.size * self._small.itemsize
        if file is not None:
            check_room(file, size)
        elif 2 * size > MAX_BYTES:
            raise SpinbenchError(
                f"keep={keep} was given; so many states of {start.shape[0]} variables of {start.shape[1]} chains would "
                f"take more than {MAX_BYTES >> 30} GiB; fewer chains or states take less, and keep_in=FILE keeps them "
                "on disk"
            )
        self._engine, self._reductions, self._model, self._most = engine, dict(reductions), model, keep
        self._who = who
        counted = budget.samples is not None and budget.until is None
        self._first = max(1, (budget.samples or 0) // keep) if counted else 1
        self._kept = InMemory() if file is None else OnDisk(file.absolute().parent, start.shape, self._small)
        self._file = file
        self._step, self._every = 0, self._first

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def adapt(self, state: State, last: bool) -> State:
        """What was seen before burn-in ended is dropped."""
        if last:
            self._begin()
        return self._engine.adapt(state, last)

    def advance(self, state: State, steps: int) -> tuple[State, Statistics]:
        """As of an `Engine`."""
        parts: list[Statistics] = []
        with told_if_interrupted(self._file):
            while steps or not parts:
                piece = min(steps, self._every - self._step % self._every)
                state, seen = self._engine.advance(state, piece)
                parts.append(seen)
                self._step, steps = self._step + piece, steps - piece
                if piece and self._step % self._every == 0:
                    self._take(state)
        return state, parts[0] if len(parts) == 1 else {name: self._joined(name, parts) for name in self._reductions}

    def taken(self, seed: int) -> UnsignedArray:
        """(C, S, M) the last S of the states, of the variables that the user gave; of a file mapped, not read.

        Args:
            seed: of the draws of variables that were summed out.

        Raises:
            UnsupportedError: the method never went from one step to the next.
            SpinbenchError: the file could not be written.
        """
        if not self._kept:
            raise UnsupportedError(f"keep={self._most} was given; {self._who} makes no chains of draws")
        places = range(max(len(self._kept) - self._most, 0), len(self._kept))
        if self._file is not None:
            with told_if_interrupted(self._file):
                return write(self._file, self._blocks(places, seed), len(places), labels_of(self._model))
        return np.ascontiguousarray(np.concatenate([*self._blocks(places, seed)]).transpose(1, 0, 2))

    def _blocks(self, places: range, seed: int) -> Iterator[UnsignedArray]:
        """(B, C, M) of some at a time: lifted ones are 64 bits wide."""
        origin = self._model.origin
        rng = np.random.default_rng(np.random.SeedSequence((seed, 0x4B455054)))
        for first in range(0, len(places), AT_ONCE):
            states = np.stack([self._kept[place].T for place in places[first : first + AT_ONCE]])
            if origin is not None:
                flat = origin.lift(states.reshape(-1, states.shape[-1]), rng)
                states = flat.reshape(*states.shape[:2], -1).astype(_smallest(origin.cardinalities))
            yield states

    def _begin(self) -> None:
        self._kept.clear()
        self._step, self._every = 0, self._first

    def _take(self, state: State) -> None:
        self._kept.append(checked_states(self._engine.states(state), self._model, self._who).astype(self._small))
        if len(self._kept) >= 2 * self._most:
            self._kept.halve()
            self._every *= 2

    def _joined(self, name: str, parts: list[Statistics]) -> np.ndarray:
        values = [part[name] for part in parts]
        match self._reductions[name]:
            case "sum":
                return np.asarray(np.sum(values, axis=0))
            case "logsumexp":
                return np.asarray(np.logaddexp.reduce(values, axis=0))
            case _:
                return values[-1]


def _smallest(cardinalities: Sequence[int]) -> np.dtype[Any]:
    """Unsigned integers that hold all states."""
    found: np.dtype[Any] = np.min_scalar_type(max(cardinalities, default=1) - 1)
    return found

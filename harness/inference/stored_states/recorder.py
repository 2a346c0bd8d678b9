"""States of chains, evenly spaced, recorded while a run goes on."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.api import Engine, Reduction, State
from spinbench.api.trace import combine_parts
from spinbench.errors import InvalidResultError, SpinbenchError, UnsupportedError
from spinbench.inference.budget import Budget
from spinbench.inference.stored_states.exports import variable_labels
from spinbench.inference.stored_states.storage import (
    StateBuffer,
    States,
    UnsignedArray,
    check_room,
    note_interruption,
    write_states,
)
from spinbench.models import Model

Statistics = dict[str, np.ndarray]
# Memory limit of stored states; while they are joined they exist twice.
MAX_BYTES = 8 * 2**30
# Samples of each chain that are converted to the user's variables together, in 64 bits each.
BLOCK = 16


class RecordingEngine:
    """An engine that records states of its chains, from the end of burn-in on, and is another one in all else.

    Batches are cut where a state is recorded, and put together again. Where it is not known how many steps there will
    be, all states are recorded at first, and of twice as many as are wanted every other one goes.

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
        narrow = _narrowest(model.cardinalities)
        size = min(keep, budget.samples or keep) * start.size * narrow.itemsize
        if file is not None:
            check_room(file, size)
        elif 2 * size > MAX_BYTES:
            raise SpinbenchError(
                f"keep={keep} was given; so many states of {start.shape[0]} variables of {start.shape[1]} chains would "
                f"take more than {MAX_BYTES >> 30} GiB; fewer chains or states take less, and keep_in=FILE keeps them "
                "on disk"
            )
        self._engine, self._reductions, self._model, self._keep = engine, reductions, model, keep
        self._who, self._file = who, file
        self._first = 1
        if budget.samples is not None and budget.until is None:
            self._first = max(1, budget.samples // keep)
        raw = BytesIO() if file is None else tempfile.TemporaryFile(dir=file.absolute().parent)  # noqa: SIM115
        self._states = StateBuffer(raw, start.shape, narrow)
        self._step, self._every = 0, self._first

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def adapt(self, state: State, last: bool) -> State:
        """What was seen before burn-in ended is dropped."""
        if last:
            self._states.clear()
            self._step, self._every = 0, self._first
        return self._engine.adapt(state, last)

    def advance(self, state: State, steps: int) -> tuple[State, Statistics]:
        """As of an `Engine`."""
        parts: list[Statistics] = []
        with note_interruption(self._file):
            while steps or not parts:
                piece = min(steps, self._every - self._step % self._every)
                state, statistics = self._engine.advance(state, piece)
                parts.append(statistics)
                self._step, steps = self._step + piece, steps - piece
                if piece and self._step % self._every == 0:
                    self._record(state)
        whole = {}
        for name, reduction in self._reductions.items():
            whole[name] = combine_parts(reduction, [part[name] for part in parts])
        return state, whole

    def last_states(self, seed: int) -> UnsignedArray:
        """(C, S, M) the last S of the states, of the variables that the user gave; of a file mapped, not read.

        Args:
            seed: of the draws of variables that were summed out.

        Raises:
            UnsupportedError: the method never went from one step to the next.
            SpinbenchError: the file could not be written.
        """
        if not self._states:
            raise UnsupportedError(f"keep={self._keep} was given; {self._who} makes no chains of draws")
        indices = range(max(len(self._states) - self._keep, 0), len(self._states))
        labels, original = variable_labels(self._model), self._model.origin or self._model
        shape = len(indices), self._states[0].shape[1], len(labels)
        with note_interruption(self._file):
            blocks = self._blocks(indices, seed)
            if self._file is not None:
                return write_states(self._file, States(blocks, shape, _narrowest(original.cardinalities), labels))
            return np.ascontiguousarray(np.concatenate([*blocks]).transpose(1, 0, 2))

    def _blocks(self, indices: range, seed: int) -> Iterator[UnsignedArray]:
        """(B, C, M) of some at a time."""
        origin = self._model.origin
        rng = np.random.default_rng(np.random.SeedSequence((seed, 0x4B455054)))
        for first in range(0, len(indices), BLOCK):
            states = np.stack([self._states[index].T for index in indices[first : first + BLOCK]])
            if origin is not None:
                flat = origin.lift(states.reshape(-1, states.shape[-1]), rng)
                states = flat.reshape(*states.shape[:2], -1).astype(_narrowest(origin.cardinalities))
            yield states

    def _record(self, state: State) -> None:
        self._states.append(check_states(self._engine.states(state), self._model, self._who))
        if len(self._states) >= 2 * self._keep:
            self._states.halve()
            self._every *= 2


def check_states(states: npt.ArrayLike | None, model: Model, who: str) -> npt.NDArray[np.int64]:
    """(N, C) states of chains as integers.

    Args:
        states: what `Engine.states` gave: integers or whole numbers.
        model: whose states they are.
        who: method and backend, for the message.

    Raises:
        InvalidResultError: another shape or type, or a number that is no state of its variable.
    """
    n = len(model.cardinalities)
    try:
        array = np.asarray(states)
    except (TypeError, ValueError):
        raise InvalidResultError(f"{who} handed over states that are no array; ({n}, C) integers are needed") from None
    if array.ndim != 2 or len(array) != n or array.dtype.kind not in "biuf":
        raise InvalidResultError(
            f"{who} handed over states of shape {array.shape} and type {array.dtype}; ({n}, C) integers are needed"
        )
    last = np.array(model.cardinalities)[:, None] - 1
    allowed = (array >= 0) & (array <= last) & (array == np.floor(array))
    if not allowed.all():
        variable, chain = np.argwhere(~allowed)[0]
        raise InvalidResultError(
            f"{who} handed over the state {array[variable, chain]:g} of variable {variable}; "
            f"0 to {last[variable, 0]} are its states"
        )
    return array.astype(np.int64)


def _narrowest(cardinalities: Sequence[int]) -> np.dtype[np.generic]:
    """Unsigned integers that hold all states."""
    return np.min_scalar_type(max(cardinalities, default=1) - 1)

"""Names of variables and of their states, as the source of a model has them, and evidence in these words."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spinbench.errors import ModelError
from spinbench.models.checks import check_index

if TYPE_CHECKING:
    from spinbench.models.factor_graph import FactorGraph
    from spinbench.models.pairwise import PairwiseModel

# {label of a variable: names of its states 0, …, K - 1}.
StateNames = Mapping[Hashable, tuple[Hashable, ...]]
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
# Largest number of names in a message.
_MAX_LISTED = 8


@dataclass(frozen=True, eq=False)
class Names:
    """Labels of a model's variables and names of their states.

    Attributes:
        labels: (M,) of the variables; empty where they are numbers.
        states: of the states of variables where they have names.
    """

    labels: tuple[Hashable, ...] = ()
    states: StateNames = field(default_factory=dict)

    @classmethod
    def from_model(cls, model: PairwiseModel | FactorGraph) -> Names:
        """The names of the variables that the user gave, observed ones included."""
        return cls((model.origin or model).labels, model.state_names)

    def label(self, v: int) -> Hashable:
        """The label of a variable, or its number."""
        return self.labels[v] if self.labels else v

    def state(self, v: int, state: int) -> Hashable:
        """The name of a variable's state, or its number."""
        names = self.states.get(self.label(v))
        return names[state] if names else state

    def assignment(self, states: Iterable[int]) -> dict[Hashable, Hashable]:
        """{label: name of the state} of (M,) states."""
        return {self.label(v): self.state(v, state) for v, state in enumerate(states)}


def check_state_names(name: str, states: StateNames, labels: Sequence[Hashable], cards: Sequence[int]) -> StateNames:
    """Names of the states of variables that have labels.

    Raises:
        ModelError: a variable that there is not, or not one name for each state, all different.
    """
    sizes = dict(zip(labels, cards, strict=False))
    for label, names in states.items():
        if label not in sizes:
            raise ModelError(f"{name}: states of {label!r} have names, but no variable has this label")
        if not len(set(names)) == len(names) == sizes[label]:
            raise ModelError(
                f"{name}: the states of variable {label!r} have the names {list(names)[:_MAX_LISTED]}; "
                f"{sizes[label]} different ones are needed"
            )
    return {label: tuple(names) for label, names in states.items()}


def find_state(name: str, variable: object, state: object, names: Sequence[Hashable]) -> int:
    """The number of a variable's state.

    Args:
        name: of the model.
        variable: label or number.
        state: its number, or as text its name.
        names: of all states; empty where they have none.

    Raises:
        ModelError: there is no such name, or it is a number and a name that is a number, of two states.
    """
    if isinstance(state, str):
        numbers = {str(each): k for k, each in enumerate(names)}
        if state not in numbers:
            listed = ", ".join(map(repr, list(numbers)[:_MAX_LISTED])) or "numbers"
            raise ModelError(f"{name}: variable {variable!r} has no state {state!r}; its states are {listed}")
        return numbers[state]
    number = check_index(name, f"the observed state of variable {variable!r}", state)
    if number in names and names.index(number) != number:
        raise ModelError(
            f"{name}: {state!r} is the number of one state of variable {variable!r} and the name of another; as text, "
            f"{str(state)!r}, it is the name"
        )
    return number


def parse_evidence(model: PairwiseModel | FactorGraph, text: str, source: str) -> dict[Hashable, int]:
    """{variable: state} of VARIABLE=STATE, one a line, or of a file's "n variable state variable state …".

    Words are names, or numbers where no name of this kind is a number. Lines that begin with # are passed over.

    Args:
        model: that is observed.
        text: whole.
        source: of the text, for messages.

    Raises:
        ModelError: a word is neither name nor number, or the evidence is contradictory.
    """
    reader = _WordReader(model, source)
    evidence: dict[Hashable, int] = {}
    for variable, state in reader.read_pairs(text):
        label, number = reader.find_variable(variable), reader.find_state(variable, state)
        if evidence.setdefault(label, number) != number:
            raise ModelError(f"{source}: the evidence is contradictory, for {variable!r} has two states")
    return evidence


class _WordReader:
    """Words as the names, or numbers, of a model's variables and states."""

    def __init__(self, model: PairwiseModel | FactorGraph, source: str) -> None:
        self._source, self._states = source, model.state_names
        self._labels: dict[str, Hashable] = {str(label): label for label in model.labels}
        if not any(map(_INTEGER.fullmatch, self._labels)):
            self._labels |= {str(v): v for v in range(model.num_variables)} | self._labels
        self._label_by_number: dict[Hashable, Hashable] = dict(enumerate(model.labels))

    def read_pairs(self, text: str) -> Iterator[tuple[str, str]]:
        """Words of a variable and of its state."""
        lines = [line.strip() for line in text.splitlines()]
        lines = [line for line in lines if line and not line.startswith("#")]
        if all("=" in line for line in lines):
            yield from map(self._split_assignment, lines)
            return
        count, *words = " ".join(lines).split()
        if count != str(len(words) // 2) or len(words) % 2:
            raise ModelError(
                f"{self._source}: evidence by names is VARIABLE=STATE, one a line, or the number of pairs and then "
                f"names without blanks; {count!r} is followed by {len(words)} words"
            )
        yield from zip(words[::2], words[1::2], strict=True)

    def _split_assignment(self, line: str) -> tuple[str, str]:
        """Variable and state; names may have "=" in them."""
        places = [place.start() for place in re.finditer("=", line)]
        pairs = [(line[:place].strip(), line[place + 1 :].strip()) for place in places]
        matches = [pair for pair in pairs if pair[0] in self._labels] or pairs[:1]
        if len(matches) > 1:
            raise ModelError(f"{self._source}: {line!r} may name {[pair[0] for pair in matches]}; use numbers")
        return matches[0]

    def find_variable(self, word: str) -> Hashable:
        """The label, or number, of a variable."""
        if word not in self._labels:
            listed = textwrap.shorten(", ".join(self._labels), 60, placeholder=" …")
            raise ModelError(f"{self._source}: no variable is named {word!r}; there are {listed}")
        return self._labels[word]

    def find_state(self, variable: str, word: str) -> int:
        """The number of a variable's state."""
        label = self.find_variable(variable)
        names = self._states.get(self._label_by_number.get(label, label), ())
        if _INTEGER.fullmatch(word) and not any(_INTEGER.fullmatch(str(name)) for name in names):
            return int(word)
        return find_state(self._source, variable, word, names)

"""Synthetic seminar announcements, so that the text experiment runs without the corpus.

They have the structure of the real ones (headers, paragraphs, the speaker's name many times and in several forms,
other people's names, tags that overlap), not their words. Each one says in its first lines that it is synthetic.
"""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from spinbench.papers.relaxation.crf.corpus import SYNTHETIC, Corpus, make_corpus


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_FIRST = _words(
    "Ada Aldo Amira Anton Beatrix Bela Carlos Clara Dmitri Edith Elif Emil Farid Fiona Goran Greta Hanna Hugo Ines "
    "Ivan Jana Jonas Kemal Lena Luca Marta Milo Nadia Nils Olga Oscar Petra Rafael Rosa Samir Selma Tomas Ursula Wanda"
)
_HEAD = _words("Bar Cal Dor Fen Gar Hol Kel Lam Mar Nor Pel Quin Ros Sand Tor Ull Ver Wex Yar Zim")
_TAIL = _words("beck dale field gren hurst ison kov lund man ner olt quist rick sen ton vik well witz worth zano")
_TITLES = ("Dr. ", "Dr. ", "Professor ", "Prof. ", "Mr. ", "Ms. ", "", "", "", "")
_PLACES = _words("Altmark Brenholm Corvale Dunmere Estrand Falkenau Gristow Hallport")
_UNITS = _words("Physics Statistics Robotics Linguistics Chemistry Economics Design Biology")
_ADJECTIVES = _words("Adaptive Sparse Robust Causal Digital Parallel Modular Ancient Urban Quantum Thermal Social")
_NOUNS = _words("Networks Markets Polymers Grammars Sensors Proteins Archives Materials Agents Turbines Maps Signals")
_MONTHS = _words("January February March April May September October November")
_DAYS = _words("Monday Tuesday Wednesday Thursday Friday")
_HALLS = _words("Wren Alder Linden Birch Rowan Maple")
_STUFF = _words(
    "large models small samples careful measurements early results new methods known limits open problems cheap "
    "hardware slow processes hidden structure noisy data simple rules public records field studies long series "
    "shared memory local storms common errors"
)
_VERBS = _words("explain improve limit predict replace reveal shape support change suggest")
_OPENERS = ("Often", "In practice", "For years", "So far", "As a rule", "At present", "By contrast", "Even so", "", "")

# {s}: the speaker in some form, {o}: somebody else, {x}: either of the two, {a} … {d}: filler
_SPEAKER = (
    "{s} will speak about {a} and {b}.",
    "In this talk {s} shows how {a} {v} {b}.",
    "{s} received a degree from the University of {p} and works on {a}.",
    "The work of {s} on {a} was honoured in {p}.",
    "A reception for {s} follows in {h} Hall.",
    "{s} is known for {a} that {v} {b}.",
)
_OTHER = (
    "To meet the speaker, please write to {o}.",
    "{o} will introduce the speaker.",
    "The series is organised by {o} and {o}.",
    "It builds on the thesis of {o}, who studied {a} in {p}.",
    "{o} first asked whether {a} {v} {b}.",
)
_EITHER = (
    "{x} joined the Department of {u} at {p} and studies {a}.",
    "Recently {x} found that {a} {v} {b}.",
    "{x} will be in {p} until {m}.",
    "Questions about {a} were raised by {x}.",
    "{x}, {u}, University of {p}",
)
_FILLER = (
    "{f} {a} {v} {b}, and {c} {v} {d}.",
    "{f} we ask how {a} can {v} {b} without {c}.",
    "{f} it is not clear whether {a} {v} {b}.",
    "{f} {a} and {b} are compared with {c}.",
)


def corpus(messages: int, seed: int = 0) -> Corpus:
    """As a corpus; message k does not depend on how many there are."""
    return make_corpus([announcement(k, seed) for k in range(messages)], SYNTHETIC)


def announcement(number: int, seed: int = 0) -> str:
    """One announcement with its tags, drawn from PCG64 with the seed (seed, number)."""
    return _Writer(number, np.random.Generator(np.random.PCG64([seed, number]))).text()


class _Writer:
    """One announcement: the people and places of the event, and the sentences that tell of them."""

    def __init__(self, number: int, rng: np.random.Generator) -> None:
        self.number = number
        self.rng = rng
        self.title = self.pick(_TITLES)
        self.first, self.last = self.name()
        self.others = [self.name() for _ in range(int(rng.integers(1, 4)))]
        self.topic = f"{self.pick(_ADJECTIVES)} {self.pick(_NOUNS)} for {self.pick(_ADJECTIVES)} {self.pick(_NOUNS)}"
        self.room = f"{self.pick(_HALLS)} Hall {rng.integers(100, 999)}"
        self.hour = f"{rng.integers(1, 12)}:{self.pick(('00', '15', '30'))}"
        self.day, self.month = self.pick(_DAYS), self.pick(_MONTHS)

    def pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def name(self) -> tuple[str, str]:
        return self.pick(_FIRST), self.pick(_HEAD) + self.pick(_TAIL)

    def speaker(self) -> str:
        """Some form of the speaker's name, tagged but for one time in thirty."""
        forms = (
            f"{self.title}{self.first} {self.last}",
            f"{self.first} {self.last}",
            f"{self.title}{self.last}",
            f"{self.first[0]}. {self.last}",
            self.last,
        )
        form: str = self.pick(forms)
        return form if self.chance(1 / 30) else f"<speaker>{form}</speaker>"

    def other(self) -> str:
        first, last = self.pick(self.others)
        forms: tuple[str, ...] = (f"{first} {last}", f"{self.pick(_TITLES)}{last}", f"{first[0]}. {last}", last)
        return str(self.pick(forms))

    def sentence(self) -> str:
        kinds = (_SPEAKER, _OTHER, _EITHER, _FILLER)
        kind: Any = kinds[int(self.rng.choice(4, p=(0.12, 0.08, 0.15, 0.65)))]
        either = self.speaker if self.chance(0.5) else self.other
        text: str = self.pick(kind).format(
            s=self.speaker(),
            o=self.other(),
            x=either(),
            a=self.phrase(),
            b=self.phrase(),
            c=self.phrase(),
            d=self.phrase(),
            v=self.pick(_VERBS),
            f=self.pick(_OPENERS),
            p=self.pick(_PLACES),
            h=self.pick(_HALLS),
            u=self.pick(_UNITS),
            m=self.pick(_MONTHS),
        )
        text = text.strip()
        return text if text.startswith("<") else text[0].upper() + text[1:]

    def phrase(self) -> str:
        return f"{self.pick(_STUFF)} {self.pick(_STUFF)}"

    def headers(self) -> list[str]:
        lines = [
            f"Type:     synthetic.announcements.{self.number}",
            "Note:     SYNTHETIC, written by the generator of spinbench; there is no such event",
        ]
        if self.chance(0.8):
            lines.append(f"Topic:    {self.topic}")
        lines.append(f"Dates:    {self.rng.integers(1, 29)}-{self.month[:3]}-95")
        if self.chance(0.8):
            lines.append(f"Time:     <stime>{self.hour} PM</stime>")
        if self.chance(0.5):
            lines.append(f"Who:      {self.speaker()}, University of {self.pick(_PLACES)}")
        if self.chance(0.4):
            lines.append(f"Host:     {self.other()}")
        if self.chance(0.6):
            lines.append(f"Place:    <location>{self.room}</location>")
        lines.append(f"PostedBy: {self.other()} on {self.rng.integers(1, 29)}-{self.month[:3]}-95")
        return [*lines, "Abstract: ", ""]

    def body(self) -> list[str]:
        """Paragraphs; their number is roughly log-normal."""
        paragraphs = []
        if self.chance(0.35):  # a poster's middle: the name on a line of its own
            paragraphs.append(f"    {self.topic}\n    {self.speaker()}\n    University of {self.pick(_PLACES)}")
        count = 1 + int(np.exp(self.rng.normal(0.7, 0.7)))
        for _ in range(count):
            sentences = [self.sentence() for _ in range(int(self.rng.integers(2, 7)))]
            paragraphs.append(self.tagged(sentences))
        place = f"{self.day}, {self.month} {self.rng.integers(1, 29)}, at <stime>{self.hour}</stime>"
        paragraphs.append(f"{place} in <location>{self.room}</location>")
        return paragraphs

    def tagged(self, sentences: list[str]) -> str:
        """A paragraph in its tags; those of a sentence that begins with the speaker overlap the name's."""
        inside = [text if text.startswith("<speaker>") else f"<sentence>{text}</sentence>" for text in sentences]
        for k, text in enumerate(inside):
            if text.startswith("<speaker>"):
                inside[k] = text.replace("<speaker>", "<speaker><sentence>", 1) + "</sentence>"
        return "<paragraph>" + textwrap.fill(" ".join(inside), 90, break_long_words=False) + "</paragraph>"

    def text(self) -> str:
        parts: list[str] = ["\n".join(self.headers()), *self.body()]
        return "\n".join([parts[0], "\n\n".join(parts[1:])]) + "\n"

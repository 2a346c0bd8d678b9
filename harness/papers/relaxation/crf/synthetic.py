"""Synthetic seminar announcements, so that the text experiment runs without the corpus.

They have the structure of the real ones (headers, paragraphs, the speaker's name many times and in several forms,
other people's names, tags that overlap), not their words. Each one says in its first lines that it is synthetic.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from spinbench.papers.relaxation.crf.corpus import SYNTHETIC, Corpus, corpus_from_texts


def _split_words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_FIRST = _split_words(
    "Ada Aldo Amira Anton Beatrix Bela Carlos Clara Dmitri Edith Elif Emil Farid Fiona Goran Greta Hanna Hugo Ines "
    "Ivan Jana Jonas Kemal Lena Luca Marta Milo Nadia Nils Olga Oscar Petra Rafael Rosa Samir Selma Tomas Ursula Wanda"
)
_HEAD = _split_words("Bar Cal Dor Fen Gar Hol Kel Lam Mar Nor Pel Quin Ros Sand Tor Ull Ver Wex Yar Zim")
_TAIL = _split_words("beck dale field gren hurst ison kov lund man ner olt quist rick sen ton vik well witz worth zano")
_TITLES = ("Dr. ", "Dr. ", "Professor ", "Prof. ", "Mr. ", "Ms. ", "", "", "", "")
_PLACES = _split_words("Altmark Brenholm Corvale Dunmere Estrand Falkenau Gristow Hallport")
_UNITS = _split_words("Physics Statistics Robotics Linguistics Chemistry Economics Design Biology")
_ADJECTIVES = _split_words(
    "Adaptive Sparse Robust Causal Digital Parallel Modular Ancient Urban Quantum Thermal Social"
)
_NOUNS = _split_words(
    "Networks Markets Polymers Grammars Sensors Proteins Archives Materials Agents Turbines Maps Signals"
)
_MONTHS = _split_words("January February March April May September October November")
_DAYS = _split_words("Monday Tuesday Wednesday Thursday Friday")
_HALLS = _split_words("Wren Alder Linden Birch Rowan Maple")
_STUFF = _split_words(
    "large models small samples careful measurements early results new methods known limits open problems cheap "
    "hardware slow processes hidden structure noisy data simple rules public records field studies long series "
    "shared memory local storms common errors"
)
_VERBS = _split_words("explain improve limit predict replace reveal shape support change suggest")
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

Option = TypeVar("Option")


def write_corpus(messages: int, seed: int = 0) -> Corpus:
    """As a corpus; message k does not depend on how many there are."""
    return corpus_from_texts([write_announcement(k, seed) for k in range(messages)], SYNTHETIC)


def write_announcement(number: int, seed: int = 0) -> str:
    """One announcement with its tags, drawn from PCG64 with the seed (seed, number)."""
    return _AnnouncementWriter(number, np.random.Generator(np.random.PCG64([seed, number]))).announcement_text()


class _AnnouncementWriter:
    """One announcement: the people and places of the event, and the sentences that tell of them."""

    def __init__(self, number: int, rng: np.random.Generator) -> None:
        self.number = number
        self.rng = rng
        self.title = self.choose(_TITLES)
        self.first, self.last = self.random_name()
        self.others = [self.random_name() for _ in range(int(rng.integers(1, 4)))]
        self.topic = (
            f"{self.choose(_ADJECTIVES)} {self.choose(_NOUNS)} for {self.choose(_ADJECTIVES)} {self.choose(_NOUNS)}"
        )
        self.room = f"{self.choose(_HALLS)} Hall {rng.integers(100, 999)}"
        self.hour = f"{rng.integers(1, 12)}:{self.choose(('00', '15', '30'))}"
        self.day, self.month = self.choose(_DAYS), self.choose(_MONTHS)

    def choose(self, options: Sequence[Option]) -> Option:
        return options[int(self.rng.integers(len(options)))]

    def draw_bernoulli(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def random_name(self) -> tuple[str, str]:
        return self.choose(_FIRST), self.choose(_HEAD) + self.choose(_TAIL)

    def speaker_name(self) -> str:
        """Some form of the speaker's name, tagged but for one time in thirty."""
        forms = (
            f"{self.title}{self.first} {self.last}",
            f"{self.first} {self.last}",
            f"{self.title}{self.last}",
            f"{self.first[0]}. {self.last}",
            self.last,
        )
        form = self.choose(forms)
        if self.draw_bernoulli(1 / 30):
            return form
        return f"<speaker>{form}</speaker>"

    def other_name(self) -> str:
        first, last = self.choose(self.others)
        forms: tuple[str, ...] = (f"{first} {last}", f"{self.choose(_TITLES)}{last}", f"{first[0]}. {last}", last)
        return self.choose(forms)

    def random_sentence(self) -> str:
        kinds = (_SPEAKER, _OTHER, _EITHER, _FILLER)
        kind = kinds[int(self.rng.choice(4, p=(0.12, 0.08, 0.15, 0.65)))]
        either = self.speaker_name if self.draw_bernoulli(0.5) else self.other_name
        text: str = self.choose(kind).format(
            s=self.speaker_name(),
            o=self.other_name(),
            x=either(),
            a=self.random_phrase(),
            b=self.random_phrase(),
            c=self.random_phrase(),
            d=self.random_phrase(),
            v=self.choose(_VERBS),
            f=self.choose(_OPENERS),
            p=self.choose(_PLACES),
            h=self.choose(_HALLS),
            u=self.choose(_UNITS),
            m=self.choose(_MONTHS),
        )
        text = text.strip()
        if text.startswith("<"):
            return text
        return text[0].upper() + text[1:]

    def random_phrase(self) -> str:
        return f"{self.choose(_STUFF)} {self.choose(_STUFF)}"

    def header_lines(self) -> list[str]:
        lines = [
            f"Type:     synthetic.announcements.{self.number}",
            "Note:     SYNTHETIC, written by the generator of spinbench; there is no such event",
        ]
        if self.draw_bernoulli(0.8):
            lines.append(f"Topic:    {self.topic}")
        lines.append(f"Dates:    {self.rng.integers(1, 29)}-{self.month[:3]}-95")
        if self.draw_bernoulli(0.8):
            lines.append(f"Time:     <stime>{self.hour} PM</stime>")
        if self.draw_bernoulli(0.5):
            lines.append(f"Who:      {self.speaker_name()}, University of {self.choose(_PLACES)}")
        if self.draw_bernoulli(0.4):
            lines.append(f"Host:     {self.other_name()}")
        if self.draw_bernoulli(0.6):
            lines.append(f"Place:    <location>{self.room}</location>")
        lines.append(f"PostedBy: {self.other_name()} on {self.rng.integers(1, 29)}-{self.month[:3]}-95")
        return [*lines, "Abstract: ", ""]

    def paragraphs(self) -> list[str]:
        """Paragraphs; their number is roughly log-normal."""
        paragraphs = []
        # A poster: the name in the middle, on a line of its own.
        if self.draw_bernoulli(0.35):
            paragraphs.append(f"    {self.topic}\n    {self.speaker_name()}\n    University of {self.choose(_PLACES)}")
        count = 1 + int(np.exp(self.rng.normal(0.7, 0.7)))
        for _ in range(count):
            sentences = [self.random_sentence() for _ in range(int(self.rng.integers(2, 7)))]
            paragraphs.append(self.tag_paragraph(sentences))
        place = f"{self.day}, {self.month} {self.rng.integers(1, 29)}, at <stime>{self.hour}</stime>"
        paragraphs.append(f"{place} in <location>{self.room}</location>")
        return paragraphs

    def tag_paragraph(self, sentences: list[str]) -> str:
        """A paragraph in its tags; those of a sentence that begins with the speaker overlap the name's."""
        inside = []
        for text in sentences:
            if text.startswith("<speaker>"):
                inside.append(text.replace("<speaker>", "<speaker><sentence>", 1) + "</sentence>")
            else:
                inside.append(f"<sentence>{text}</sentence>")
        return "<paragraph>" + textwrap.fill(" ".join(inside), 90, break_long_words=False) + "</paragraph>"

    def announcement_text(self) -> str:
        parts: list[str] = ["\n".join(self.header_lines()), *self.paragraphs()]
        return "\n".join([parts[0], "\n\n".join(parts[1:])]) + "\n"

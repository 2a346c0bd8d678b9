"""Programs of others: a UAI file goes in, MAR and PR files come out, within a time limit.

A program is a plugin of a few lines: a backend that names it, and a kernel whose `command` is how to call it. One that
answers in another way has a `read` of its own.

    class Mine(LibraryBackend):
        name = "mine"
        programs = ("mine",)
        install = "apt install mine"

    class MineExact(ProgramAnswer):
        command = ("mine", "{model}", "{evidence}", "--mar", "{mar}", "--pr", "{pr}")
"""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import numpy as np

from spinbench.api import Backend, FactorGraph, Model
from spinbench.backends.peers import library
from spinbench.errors import InvalidResultError, SpinbenchError
from spinbench.models.files.evid import format_evidence
from spinbench.models.files.uai import format_uai

FILES = {"model": "model.uai", "evidence": "evidence", "mar": "model.MAR", "pr": "model.PR"}


class ProgramAnswer(library.LibraryAnswer[tuple[TemporaryDirectory[str], Sequence[int]]]):
    """An exact solver that is a program; its start and the reading of its files count as its time.

    Class attributes:
        command: the program and its arguments, in which {model}, {evidence} (an empty one), {mar} and {pr} are paths in
            {folder}. Without {pr} `read` finds no log Z, which `notes` should say.
        seconds: that a call may take.
        most_nats: between the weights of one table, zeros aside, for programs that multiply weights and do not notice
            where they leave the range of doubles.
    """

    command: tuple[str, ...]
    seconds: ClassVar[float] = 60.0
    most_nats: ClassVar[float] = math.inf

    @classmethod
    def takes(cls, backend: Backend, model: Model) -> str:
        if not shutil.which(cls.command[0]):
            return f"{backend.name} needs the program {cls.command[0]}, not found here"
        if cls.most_nats < math.inf and (spread := library.span(model)) > cls.most_nats:
            return f"{backend.name} takes tables whose weights span e^{cls.most_nats:g} at most, not e^{spread:.4g}"
        return ""

    def build(self, model: Model) -> tuple[TemporaryDirectory[str], Sequence[int]]:
        graph = library.all_named(model)
        return folder_of(graph), graph.cardinalities

    def solve(self, built: tuple[TemporaryDirectory[str], Sequence[int]], seed: int) -> library.Answer:
        folder, cardinalities = built
        home = Path(folder.name)
        output = call_program(self.library, self.command, home, self.seconds)
        return self.read(home, output, cardinalities)

    def read(self, home: Path, output: str, cardinalities: Sequence[int]) -> library.Answer:
        """The answer, by default from files as of the competitions, with log10 Z.

        Args:
            home: the folder in which the program ran.
            output: its standard output.
            cardinalities: (N,) the numbers of states.

        Raises:
            InvalidResultError: there is none.
        """
        log_z = math.nan
        if any("{pr}" in part for part in self.command):
            log_z = self._numbers(home / FILES["pr"], "PR", 1)[0] * math.log(10)
        flat = self._numbers(home / FILES["mar"], "MAR", 1 + sum(1 + k for k in cardinalities))
        marginals, place = [], 1
        for size in cardinalities:
            marginals.append(np.array(flat[place + 1 : place + 1 + size]))
            place += 1 + size
        return library.Answer(marginals, log_z)

    def _numbers(self, path: Path, kind: str, count: int) -> list[float]:
        """The numbers of the last answer in a file.

        Raises:
            InvalidResultError: it is not there, or of another length.
        """
        try:
            numbers = [float(token) for token in path.read_text().rpartition(kind)[2].split()]
        except (OSError, ValueError) as error:
            raise InvalidResultError(f"{self.library} wrote no readable {kind} file: {error}") from None
        if len(numbers) != count:
            raise InvalidResultError(f"{self.library} wrote {len(numbers)} numbers into its {kind} file, not {count}")
        return numbers


def folder_of(graph: FactorGraph) -> TemporaryDirectory[str]:
    """A folder with the model and no evidence, which goes with the object.

    Raises:
        ModelError: a UAI file cannot hold the weights.
    """
    folder = TemporaryDirectory(prefix="spinbench-")
    (Path(folder.name) / FILES["model"]).write_text(format_uai(graph))
    (Path(folder.name) / FILES["evidence"]).write_text(format_evidence({}))
    return folder


def call_program(library: str, command: Sequence[str], home: Path, seconds: float) -> str:
    """What a program writes to its standard output, called in `home`; `command` and `seconds` as of `ProgramAnswer`.

    Raises:
        SpinbenchError: it takes longer, or ends with another status than 0.
    """
    paths = {"folder": str(home), **{name: str(home / file) for name, file in FILES.items()}}
    command = [part.format(**paths) for part in command]
    try:
        done = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise SpinbenchError(f"{library} took longer than the {seconds:g} s of its time limit") from None
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "without a word").splitlines()[-1]
        raise SpinbenchError(f"{library} ended with status {done.returncode}: {last}")
    return done.stdout

"""Programs of others: a UAI file goes in, MAR and PR files come out, within a time limit.

A program is a plugin of a few lines: a backend without requirements, and a kernel whose `command` is how to call it.

    class Mine(LibraryBackend):
        name = "mine"

    class MineExact(ProgramAnswer):
        library = "mine"
        command = ("mine", "{model}", "{evidence}", "--mar", "{mar}", "--pr", "{pr}")
"""

from __future__ import annotations

import math
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np

from spinbench.backends.peers.answers import NO_LOG_Z, Answer, LibraryAnswer
from spinbench.errors import InvalidResultError, SpinbenchError
from spinbench.models import Model, to_factor_graph
from spinbench.models.files.uai import format_evidence, format_uai


class ProgramAnswer(LibraryAnswer):
    """An exact solver that is a program; its start and the reading of its files count as its time.

    Class attributes:
        command: the program and its arguments, in which {model}, {evidence} (an empty one), {mar} and {pr} are paths;
            without {pr} there is no log Z.
        seconds: that a call may take.
    """

    command: ClassVar[tuple[str, ...]]
    seconds: ClassVar[float] = 60.0

    @classmethod
    def takes(cls, model: Model) -> str:
        return (
            "" if shutil.which(cls.command[0]) else f"{cls.library} needs the program {cls.command[0]}, not found here"
        )

    def build(self, model: Model) -> Any:
        if not any("{pr}" in part for part in self.command):
            self.notes = (*self.notes, NO_LOG_Z)
        folder = TemporaryDirectory(prefix="spinbench-")  # goes with the kernel
        (Path(folder.name) / "model.uai").write_text(format_uai(to_factor_graph(model)))
        (Path(folder.name) / "evidence").write_text(format_evidence({}))
        return folder, model.cardinalities

    def solve(self, built: Any, seed: int) -> Answer:
        folder, cardinalities = built
        home = Path(folder.name)
        names = {"model": "model.uai", "evidence": "evidence", "mar": "model.MAR", "pr": "model.PR"}
        paths = {name: str(home / file) for name, file in names.items()}
        command = [part.format(**paths) for part in self.command]
        try:
            done = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=self.seconds, check=False)
        except subprocess.TimeoutExpired:
            raise SpinbenchError(f"{self.library} took longer than the {self.seconds:g} s of its time limit") from None
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip() or "without a word").splitlines()[-1]
            raise SpinbenchError(f"{self.library} ended with status {done.returncode}: {last}")
        log_z = math.nan
        if any("{pr}" in part for part in self.command):
            log_z = self._numbers(home / names["pr"], "PR", 1)[0] * math.log(10)
        flat = self._numbers(home / names["mar"], "MAR", 1 + sum(1 + k for k in cardinalities))
        found, place = [], 1
        for size in cardinalities:
            found.append(np.array(flat[place + 1 : place + 1 + size]))
            place += 1 + size
        return Answer(found, log_z)

    def _numbers(self, path: Path, kind: str, count: int) -> list[float]:
        """The numbers of the last answer in a file.

        Raises:
            InvalidResultError: it is not there, or of another length.
        """
        try:
            numbers = [float(word) for word in path.read_text().rpartition(kind)[2].split()]
        except (OSError, ValueError) as error:
            raise InvalidResultError(f"{self.library} wrote no readable {kind} file: {error}") from None
        if len(numbers) != count:
            raise InvalidResultError(f"{self.library} wrote {len(numbers)} numbers into its {kind} file, not {count}")
        return numbers

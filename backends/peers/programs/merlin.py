"""merlin: bucket tree elimination over a min-fill order.

One call gives log Z and all marginals. Its other exact algorithm, clique trees, is sometimes faster, and crashes on
models of several components. Its belief propagation and its weighted mini-buckets write no messages, which `bp` and
`wmb` of ours have to report.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from spinbench.backends.peers import library, program
from spinbench.errors import InvalidResultError


class MerlinBackend(library.LibraryBackend):
    """The program, version 1.7; the six decimals that it writes are those of single precision."""

    name = "merlin"
    provides: ClassVar[frozenset[str]] = frozenset({"f32"})
    programs: ClassVar[tuple[str, ...]] = ("merlin",)
    install = "build https://github.com/radum2275/merlin with cmake and Boost, and put it on the PATH"


class MerlinExact(program.ProgramAnswer):
    """log Z and all marginals."""

    notes = (
        "the program writes six decimals of log Z and of marginals",
        "the program multiplies weights, not their logarithms: where Z leaves the range of doubles it has no answer",
    )
    most_nats = 300.0
    command = (
        *("merlin", "--input-file", "{model}", "--evidence-file", "{evidence}", "--task", "MAR"),
        *("--algorithm", "bte", "--output-format", "json", "--output-file", "{folder}/model"),
    )

    def read(self, home: Path, output: str, cardinalities: Sequence[int]) -> library.Answer:
        """From its JSON, which has both."""
        try:
            content = json.loads((home / "model.MAR.json").read_text())
            log_z, sound = float(content["value"]), content["status"] == "true"
            marginals = [np.array(entry["probabilities"], dtype=np.float64) for entry in content["marginals"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidResultError(f"merlin wrote no readable answer: {error}") from None
        if not sound or not np.isfinite(log_z):
            raise InvalidResultError(f"merlin found no answer: {content.get('message', log_z)}")
        if [len(table) for table in marginals] != list(cardinalities):
            raise InvalidResultError(
                f"merlin wrote marginals of {len(marginals)} variables, not of {len(cardinalities)}"
            )
        return library.Answer(marginals, log_z)

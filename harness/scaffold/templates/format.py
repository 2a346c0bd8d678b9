"""A file format to start from: coins and their probabilities of heads. Replace what is read and written."""

from __future__ import annotations

import numpy as np

from spinbench.api import FactorGraph, Format, Model, ModelFile, to_pairwise
from spinbench.errors import ModelError


class MyFormat(Format):
    """After a first line "coins", a line for each variable: its name and p(1)."""

    suffixes = (".coins",)
    summary = "coins and their probabilities of heads"

    def recognises(self, head: bytes) -> bool:
        """By the first word; a name alone is no proof."""
        return head.split(maxsplit=1)[:1] == [b"coins"]

    def read(self, file: ModelFile) -> FactorGraph:
        """What is wrong is said in one sentence, with file, line and token."""
        names, tables = [], []
        for number, line in enumerate(file.text().decode().splitlines()[1:], 2):
            name, _, text = line.strip().rpartition(" ")
            try:
                p = float(text)
            except ValueError:
                p = np.nan
            if not (name and 0 <= p <= 1):
                raise ModelError(
                    f"{file.name}, line {number}, token {text[:24]!r}: a name and a probability are needed"
                )
            names.append(name)
            tables.append([1 - p, p])
        if not names:
            raise ModelError(f"{file.name}: there are no coins")
        return FactorGraph.from_tables([2] * len(names), [((v,), t) for v, t in enumerate(tables)], labels=names)

    def write(self, model: Model) -> bytes:
        """Leave this out if the format is only read."""
        pairs = to_pairwise(model)
        if pairs.num_edges or pairs.groups:
            raise ModelError(f"{model.name}: its variables depend on each other, which coins do not")
        names = pairs.labels or range(pairs.num_variables)
        heads = 1 / (1 + np.exp(-pairs.biases))
        lines = [f"{name} {p!r}" for name, p in zip(names, heads.tolist(), strict=True)]
        return "\n".join(["coins", *lines, ""]).encode()

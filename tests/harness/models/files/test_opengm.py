"""OpenGM's files have the energies that OpenGM's functions have, written out here state by state."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from small_model_files import GOOD, opengm_file

from spinbench.errors import ModelError, UnavailableError
from spinbench.models import formats, load
from spinbench.models.files.format import ModelFile

Energy = Callable[[Sequence[int]], float]
RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(2, 4, 3))
# Partitions of three variables as OpenGM orders them.
PARTITIONS = {(0, 0, 0): 1.0, (1, 0, 0): 2.0, (0, 1, 0): 3.0, (0, 0, 1): 4.0, (1, 1, 1): 5.0}
# Type, indices, values, numbers of states, energy.
FUNCTIONS: list[tuple[int, list[int], list[float], list[int], Energy]] = [
    (16000, [3, 2, 4, 3], TABLE.ravel(order="F").tolist(), [2, 4, 3], lambda x: float(TABLE[tuple(x)])),
    (16001, [2, 3, 4, 2, 1, 11], [0.5, 7, -3], [3, 4], lambda x: {(1, 0): 7, (2, 3): -3}.get(tuple(x), 0.5)),
    (16002, [3, 4], [1.5], [3, 4], lambda x: 1.5 * abs(x[0] - x[1])),
    (16003, [3, 4], [1.5, 2], [3, 4], lambda x: 2 * min(abs(x[0] - x[1]), 1.5)),
    (16004, [3, 4], [1.5], [3, 4], lambda x: 1.5 * (x[0] - x[1]) ** 2),
    (16005, [3, 4], [3, 2], [3, 4], lambda x: 2 * min((x[0] - x[1]) ** 2, 3)),
    (16006, [4, 3], [-1, 2], [4, 3], lambda x: -1 if x[0] == x[1] else 2),
    (16007, [3, 2, 3, 4], [-1, 2], [2, 3, 4], lambda x: -1 if len(set(x)) == 1 else 2),
    (16008, [2, 2, 3], [4], [2, 3], lambda _: 4),
    (
        16011,
        [3, 2, 3, 4],
        [1, 2, 3, 4, 5],
        [2, 3, 4],
        lambda x: PARTITIONS[x[1] == x[0], x[2] == x[0], x[2] == x[1]],
    ),
]


def read(data: bytes, beta: float = 1.0) -> Any:
    return formats.load("opengm").read(ModelFile("m.h5", data, beta))


@pytest.mark.parametrize(("kind", "indices", "values", "cards", "energy"), FUNCTIONS, ids=lambda x: str(x)[:5])
def test_functions(kind: int, indices: list[int], values: list[float], cards: list[int], energy: Energy) -> None:
    unary = ([1, cards[0]], range(cards[0]))
    functions = (
        {16000: [unary], kind: [(indices, values)] * 2} if kind != 16000 else {16000: [unary, (indices, values)]}
    )
    scope = list(range(len(cards)))
    data = opengm_file(cards, functions, [(0, 0, [0]), (1, min(len(functions) - 1, 1), scope)])
    states = np.array(list(itertools.product(*map(range, cards))))
    expected = [-0.7 * (energy(x) + x[0]) for x in states.tolist()]
    np.testing.assert_allclose(read(data, 0.7).log_weight(states), expected, rtol=1e-12)


def edited(change: Callable[[Any], object]) -> bytes:
    buffer = io.BytesIO(GOOD["opengm"])
    with h5py.File(buffer, "r+") as archive:
        change(archive)
    return buffer.getvalue()


def replace(name: str, values: Any, **options: Any) -> Callable[[Any], object]:
    def change(archive: Any) -> None:
        del archive[name]
        archive.create_dataset(name, data=values, **options)

    return change


def link_elsewhere(archive: Any) -> None:
    del archive["gm/factors"]
    archive["gm/factors"] = h5py.ExternalLink("/etc/passwd", "x")


def store_elsewhere(archive: Any) -> None:
    del archive["gm/factors"]
    archive["gm"].create_dataset("factors", (12,), np.uint64, external=[("/etc/passwd", 0, 96)])


BAD: dict[str, tuple[Callable[[Any], object], str]] = {
    "no model": (lambda archive: archive.move("gm/header", "header"), "no model in it"),
    "two models": (lambda archive: archive.copy("gm", "other"), "models gm, other in it"),
    "another number of variables": (
        replace("gm/header", [2, 0, 9, 3, 2, 16000, 2, 16006, 1, 1]),
        "claims 9 variables, and 2 have numbers of states",
    ),
    "another version": (replace("gm/header", [1, 0, 2, 3, 0]), "version 2.0 is needed"),
    "a link": (link_elsewhere, "no array 'factors' of integers"),
    "another file": (store_elsewhere, "lies in another file"),
    "zeros": (replace("gm/factors", np.zeros(10**7, int), compression=9, shuffle=True), "too large"),
    "texts": (replace("gm/numbers-of-states", ["a", "b"]), "no array 'numbers-of-states'"),
    "below 0": (replace("gm/factors", [0, 0, 1, -1]), "no array 'factors' of integers"),
    "too few factors": (replace("gm/factors", [0, 0, 1, 0]), "damaged"),
    "too many factors": (
        replace("gm/header", [2, 0, 2, 2, 2, 16000, 2, 16006, 1, 1]),
        "factors have 14 numbers; 2 factors have 9",
    ),
    "other states": (replace("gm/numbers-of-states", [2, 4]), "that no variable has"),
    "too many functions": (replace("gm/header", [2, 0, 2, 3, 2, 16000, 9**9, 16006, 1, 1]), "are claimed"),
    "states of no variable": (replace("gm/function-id-16006/indices", [2, 2**20]), "that no variable has"),
    "-inf": (replace("gm/function-id-16006/values", [0.0, -np.inf]), "is NaN or -inf"),
    "an unknown type": (
        lambda archive: (
            archive.move("gm/function-id-16006", "gm/function-id-16009"),
            replace("gm/header", [2, 0, 2, 3, 2, 16000, 2, 16009, 1, 1])(archive),
        ),
        "type 16009 are none",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_refusals(name: str) -> None:
    change, sentence = BAD[name]
    with pytest.raises(ModelError, match=sentence):
        read(edited(change))


def test_large_tables_are_refused_before_they_are_made() -> None:
    data = opengm_file([2**14, 2**14], {16006: [([2**14, 2**14], [0, 1])]}, [(0, 0, [0, 1])])
    with pytest.raises(ModelError, match=f"more than {2**26} entries"):
        read(data)


def test_files_are_found_by_name_and_content(tmp_path: Path) -> None:
    for name in ("m.h5", "m"):
        (tmp_path / name).write_bytes(GOOD["opengm"])
        assert load(tmp_path / name, beta=2.0).cardinalities == (2, 3)


def test_without_h5py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinbench.models.files.cost_functions.opengm.find_spec", lambda _: None)
    with pytest.raises(UnavailableError, match=r"pip install 'spinbench\[opengm\]'"):
        read(GOOD["opengm"])

"""merlin, libDAI and toulbar2: what they write, by programs of the same names that copy it, and themselves where they
are installed."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import InvalidResultError, SpinbenchError, UnavailableError, UnsupportedError
from spinbench.foundation import plugins
from spinbench.inference import registry
from spinbench.models import FactorGraph, generators

NAMES = {"merlin": "merlin", "libdai": "spinbench-libdai", "toulbar2": "toulbar2"}
ACCURACY = {"merlin": 1e-6, "libdai": 1e-9, "toulbar2": 1e-8}
PRECISIONS = {"merlin": "float32", "libdai": "float64", "toulbar2": "float64"}
FAKE = """#!PYTHON
import pathlib, sys, time
mode, prepared = pathlib.Path(__file__).with_suffix(".mode").read_text(), pathlib.Path(__file__).with_suffix(".out")
if mode == "slow":
    time.sleep(30)
if mode == "failing":
    sys.exit("no memory left")
given = dict(zip(sys.argv[1:], sys.argv[2:]))
text = "garbage" if mode == "garbage" else prepared.read_text()
NAMED
"""
PLACES = {
    "merlin": """
assert (given["--task"], given["--algorithm"], given["--output-format"]) == ("MAR", "bte", "json")
assert pathlib.Path(given["--input-file"]).is_file() and pathlib.Path(given["--evidence-file"]).read_text() == "0\\n"
pathlib.Path(given["--output-file"] + ".MAR.json").write_text(text)
""",
    "libdai": """
assert pathlib.Path(sys.argv[1]).is_file() and sys.argv[2].startswith(("JTREE[", "BP["))
for path, part in zip(sys.argv[3:], text.split("---")):
    pathlib.Path(path).write_text(part)
""",
    "toulbar2": """
assert pathlib.Path(sys.argv[1]).is_file() and "-logz" in sys.argv
print(text)
""",
}


class Fake:
    """A program on the path that writes what the test prepares, or fails."""

    def __init__(self, folder: Path, backend: str) -> None:
        self._file = folder / NAMES[backend]
        self._file.write_text(FAKE.replace("PYTHON", sys.executable).replace("NAMED", PLACES[backend]))
        self._file.chmod(0o755)
        self.writes("")

    def writes(self, text: str, mode: str = "good") -> None:
        self._file.with_suffix(".out").write_text(text)
        self._file.with_suffix(".mode").write_text(mode)


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Fake]:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return {backend: Fake(tmp_path, backend) for backend in NAMES}


def model(zero: float = -np.inf) -> FactorGraph:
    """Of two parts, zeros or another number, a factor of three variables and a variable in no factor."""
    rng = np.random.default_rng(3)
    sizes, scopes = [2, 3, 3, 2, 4, 2, 2], [(0, 1, 2), (2, 3), (3, 0), (1,), (5, 6)]
    tables = [rng.normal(size=[sizes[v] for v in scope]) for scope in scopes]
    tables[1][0, 1] = zero
    return FactorGraph.from_log_tables(sizes, list(zip(scopes, tables, strict=True)), log_constant=0.7)


def flat(marginals: Any) -> np.ndarray:
    return np.concatenate([np.ravel(table) for table in marginals])


def taken(backend: str) -> FactorGraph:
    """The model as a program takes it."""
    return model(-2.0) if backend == "toulbar2" else model()


def answer(backend: str) -> Any:
    return spinbench.run(taken(backend), "exact", backend, precision=PRECISIONS[backend], simplify=False)


def prepared(backend: str, log_z: float, marginals: list[list[float]]) -> str:
    """As the program writes them."""
    if backend == "merlin":
        entries = [{"variable": v, "states": len(p), "probabilities": p} for v, p in enumerate(marginals)]
        return json.dumps({"task": "MAR", "value": log_z, "status": "true", "message": "", "marginals": entries})
    if backend == "libdai":
        rows = " ".join(f"{len(p)} {' '.join(map(repr, p))}" for p in marginals)
        return f"MAR\n{len(marginals)} {rows}\n---PR\n{log_z / math.log(10)!r}\n"
    return f"Preprocessing time: 0.001 seconds.\n{log_z - 2e-7:.12f} <= Log(Z) <= {log_z + 2e-7:.12f} in 1 backtracks"


@pytest.mark.parametrize("backend", NAMES)
def test_what_a_program_writes_is_read(backend: str, fakes: dict[str, Fake]) -> None:
    given = spinbench.exact(taken(backend))
    fakes[backend].writes(prepared(backend, float(given.log_z), [table.tolist() for table in given.marginals]))
    found = answer(backend)
    assert (found.status, found.log_z_kind) == ("ok", "exact")
    assert found.log_z == pytest.approx(given.log_z, abs=1e-9)
    if backend == "toulbar2":
        assert found.marginals is None
        assert "the library gives no marginals" in found.notes
    else:
        np.testing.assert_allclose(flat(found.marginals), flat(given.marginals), atol=1e-12)


@pytest.mark.parametrize("backend", NAMES)
@pytest.mark.parametrize(
    ("mode", "error", "sentence"),
    [
        ("slow", SpinbenchError, "{} took longer than the 0.5 s of its time limit"),
        ("failing", SpinbenchError, "{} ended with status 1: no memory left"),
        ("garbage", InvalidResultError, "{} wrote no readable "),
    ],
)
def test_what_goes_wrong_is_one_sentence(
    backend: str,
    mode: str,
    error: type[Exception],
    sentence: str,
    fakes: dict[str, Fake],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if mode == "slow":
        (point,) = registry.kernels.candidates("exact", backend)
        monkeypatch.setattr(registry.kernels.load(point), "seconds", 0.5)
    fakes[backend].writes("", mode)
    with pytest.raises(error) as caught:
        answer(backend)
    assert str(caught.value).startswith(sentence.format(backend))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("backend", "text", "sentence"),
    [
        (
            "merlin",
            '{"value": -800.0, "status": "false", "message": "underflow", "marginals": []}',
            "found no answer: und",
        ),
        ("merlin", '{"value": 1.0, "status": "true", "marginals": []}', "wrote marginals of 0 variables, not of 7"),
        ("toulbar2", "41.510 <= Log(Z) <= 41.510 in 9 backtracks", "wrote 41.510 for log Z; a later version"),
        ("toulbar2", "-inf <= Log(Z) <= -inf in 0 backtracks", "found log Z between -inf and -inf"),
        ("toulbar2", "Log(Z)= -inf", "wrote no readable bounds"),
    ],
)
def test_answers_that_are_none_are_refused(backend: str, text: str, sentence: str, fakes: dict[str, Fake]) -> None:
    fakes[backend].writes(text)
    with pytest.raises(InvalidResultError, match=sentence):
        answer(backend)


def test_messages_of_libdai_are_read_in_their_layout(fakes: dict[str, Fake]) -> None:
    """Of a pair of binary variables: those of the two fields come first, and are not messages of ours."""
    pair = generators.ring(3, seed=1)
    fakes["libdai"].writes(
        "MAR---PR---2 1e-12\n0 0 1 2\n1 1 1 3\n2 2 1 2\n"
        + "".join(f"{3 + k} {v} {math.log(0.25)} {math.log(0.75)}\n" for k in range(3) for v in range(3))
    )
    found = spinbench.run(pair, "bp", "libdai", 10)
    assert (found.status, found.diagnostics["iterations"], found.diagnostics["residual"]) == ("ok", 2.0, 1e-12)
    fields = pair.biases + 2 * np.log(3)  # two neighbours each
    np.testing.assert_allclose(found.marginals, 1 / (1 + np.exp(-fields)), atol=1e-12)
    fakes["libdai"].writes("MAR---PR---garbage")
    with pytest.raises(InvalidResultError, match="libdai wrote no readable messages"):
        spinbench.run(pair, "bp", "libdai", 10)


@pytest.mark.parametrize("backend", NAMES)
def test_one_that_is_not_there_is_unavailable_with_a_line_on_how_to_get_it(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    plugins.forget()
    with pytest.raises(UnavailableError, match=f"backend {backend} needs {NAMES[backend]}, not installed here: build "):
        spinbench.run(generators.grid(2, 2), "exact", backend, precision=PRECISIONS[backend])


def needed(backend: str) -> None:
    if lacking := registry.missing(registry.backend_class(backend)):
        pytest.skip(f"{', '.join(lacking)} is not installed: {registry.backend_class(backend).install}")


@pytest.mark.parametrize("backend", NAMES)
def test_exact_answers_are_exact(backend: str) -> None:
    needed(backend)
    try:
        answer(backend)
    except InvalidResultError as error:
        if "a later version" not in str(error):
            raise
        pytest.skip(str(error))
    unary = FactorGraph.from_log_tables([2, 3], [((0,), np.arange(2.0)), ((1,), np.arange(3.0))])
    for given in (generators.grid(6, 6, seed=1), generators.tree(9, seed=1), taken(backend), unary):
        exact, found = (
            spinbench.exact(given),
            spinbench.run(given, "exact", backend, precision=PRECISIONS[backend], simplify=False),
        )
        close = ACCURACY[backend]
        assert found.log_z == pytest.approx(exact.log_z, abs=close)
        if backend != "toulbar2":
            np.testing.assert_allclose(flat(found.marginals), flat(exact.marginals), atol=close)


def test_toulbar2_refuses_zeros(fakes: dict[str, Fake]) -> None:
    with pytest.raises(UnsupportedError, match="toulbar2 takes models without zeros"):
        spinbench.run(model(), "exact", "toulbar2", simplify=False)


@pytest.mark.parametrize("schedule", ["auto", "parallel", "sequential"])
@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_libdai_reaches_the_same_fixed_point(schedule: str, damping: float) -> None:
    needed("libdai")
    for given in (generators.grid(4, 4, c1=0.5, c2=0.5, seed=1), model()):
        found = spinbench.run(given, "bp", "libdai", 500, schedule=schedule, damping=damping)
        ours = spinbench.run(given, "bp", "numpy", 500)
        np.testing.assert_allclose(flat(found.marginals), flat(ours.marginals), atol=1e-8)
        assert found.log_z == pytest.approx(ours.log_z, abs=1e-7)
        assert found.status == "ok"

"""How another library or program stands in the table, by ones that the test writes: none need be installed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.backends.jax import JaxBackend
from spinbench.errors import InvalidResultError, SpinbenchError, UnavailableError, UnsupportedError
from spinbench.inference import kernels, registry, runner
from spinbench.models import FactorGraph, generators
from spinbench.reporting.commands import listing

LIBRARY = """
import numpy as np

def sweep(h, edges, J, states, sweeps, seed):
    rng = np.random.default_rng(seed)
    W = np.zeros((len(h), len(h)))
    W[edges[:, 0], edges[:, 1]] = W[edges[:, 1], edges[:, 0]] = J
    for _ in range(sweeps):
        for i in range(len(h)):
            up = 1 / (1 + np.exp(-2 * (h[i] + W[i] @ states)))
            states[i] = np.where(rng.random(states.shape[1]) < up, 1, -1)
"""
PLUGIN = """
from spinbench.backends.peers.chains import THINNED, UNCUT, LibraryChains
from spinbench.backends.peers.library import LibraryBackend, spin_form

class Fake(LibraryBackend):
    name = "fake"
    requires = ("fakepeer",)

class FakeGibbs(LibraryChains):
    allowed = {"scan": ("chromatic", "raster"), "log_z": ("auto", "chib_bar", "none")}

    def __init__(self, method, backend, model, tables):
        super().__init__(method, backend, model, tables)
        import fakepeer
        self._sweep, self._form = fakepeer.sweep, spin_form(model, self.order)

    def begin(self, states):
        return 2.0 * states - 1

    def move(self, held, steps, seed, beta):
        self._sweep(self._form.h, self._form.edges, self._form.J, held, steps, seed)
        return held

    def read(self, held):
        return (held > 0).astype("int8")
"""
TEMPERED = """

class Tempered(Fake):
    name = "tempered"

class TemperedGibbs(FakeGibbs):
    allowed = {**FakeGibbs.allowed, "log_z": ("stones", "none")}
    tempered = True

    def move(self, held, steps, seed, beta):
        self._sweep(beta * self._form.h, self._form.edges, beta * self._form.J, held, steps, seed)
        return held
"""
POINTS = {"backends": {"fake": "Fake"}, "kernels": {"gibbs.fake": "FakeGibbs"}}


@pytest.fixture
def fake(install_plugin: Any) -> None:
    install_plugin("fakeplugin", PLUGIN, POINTS)


@pytest.fixture
def library(fake: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fakepeer.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()


def listed(capsys: pytest.CaptureFixture[str]) -> str:
    listing.run_list()
    return capsys.readouterr().out


@pytest.mark.usefixtures("fake")
def test_a_library_that_is_not_there_is_unavailable_with_the_line_that_installs_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = "backend fake needs fakepeer, not installed here: pip install 'spinbench[peers]'"
    with pytest.raises(UnavailableError) as caught:
        spinbench.run(generators.grid(2, 2), "gibbs", "fake", 10)
    assert str(caught.value) == line
    pairs, _, others = listed(capsys).partition("other libraries")
    assert "fake" not in pairs
    assert [" ".join(row.split()) for row in others.splitlines() if "│ fake" in row] == [
        "│ fake │ gibbs │ unavailable │"
    ]
    assert line in others


@pytest.mark.usefixtures("library")
def test_a_library_that_is_there_is_in_the_table_and_is_chosen_by_nobody(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [" ".join(row.split()) for row in listed(capsys).splitlines() if "│ fake" in row]
    assert rows == ["│ fake │ gibbs │ native │"]
    asked = []
    monkeypatch.setattr(runner, "run", lambda model, method, backend, *rest, **options: asked.append(backend))
    spinbench.compare(generators.grid(2, 2), ["gibbs"])
    assert "numpy" in asked
    assert "fake" not in asked
    assert kernels.is_peer("fake")
    assert not kernels.is_peer("numpy")


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("marginals", ["rao_blackwell", "empirical"])
def test_samples_go_through_the_methods_own_estimators(marginals: str) -> None:
    model = generators.grid(3, 3, seed=1)
    exact = spinbench.exact(model)
    found = spinbench.run(model, "gibbs", "fake", 1000, chains=16, seed=2, marginals=marginals)
    assert (found.tier, found.kernel.split()[0]) == ("native", "fakeplugin")
    assert np.abs(found.marginals - exact.marginals).max() < 5 * found.marginals_se.max()
    assert (np.abs(found.marginals - exact.marginals) < 5 * found.marginals_se).all()
    assert found.r_hat.max() < 1.05
    assert found.log_z == pytest.approx(exact.log_z, abs=5 * found.log_z_se)
    assert found.notes[0].startswith("of the states those at the ends of calls count")
    again = spinbench.run(model, "gibbs", "fake", 1000, chains=16, seed=2, marginals=marginals)
    np.testing.assert_array_equal(again.marginals, found.marginals)


@pytest.mark.usefixtures("library")
def test_a_library_that_heeds_temperatures_climbs_stepping_stones(install_plugin: Any) -> None:
    points = {"backends": {"tempered": "Tempered"}, "kernels": {"gibbs.tempered": "TemperedGibbs"}}
    install_plugin("temperedplugin", PLUGIN + TEMPERED, points)
    model = generators.grid(3, 3, seed=1)
    result = spinbench.run(model, "gibbs", "tempered", 500, chains=16, seed=2, burn_in=400, log_z="stones")
    assert "stones" in result.log_z_estimates
    assert abs(result.log_z - spinbench.exact(model).log_z) < 5 * result.log_z_se
    assert result.log_z_se < 0.2


@pytest.mark.usefixtures("library")
def test_states_are_in_the_models_order() -> None:
    model = generators.tree(6, c1=3.0, c2=0.0, seed=4)
    found = spinbench.run(model, "gibbs", "fake", 400, chains=8, seed=1, keep=50)
    exact = np.asarray(spinbench.exact(model).marginals)
    means = found.states.reshape(-1, 6).mean(axis=0)
    np.testing.assert_allclose(means, exact, atol=5 * np.sqrt(0.25 / 400))


@pytest.mark.usefixtures("library")
def test_what_it_cannot_do_is_refused_in_one_sentence() -> None:
    model = generators.grid(2, 2)
    with pytest.raises(UnsupportedError, match="fake does scan=chromatic or raster, not scan=random"):
        spinbench.run(model, "gibbs", "fake", 10, scan="random")
    with pytest.raises(UnsupportedError, match="fake does log_z=auto or chib_bar or none, not log_z=stones"):
        spinbench.run(model, "gibbs", "fake", 10, log_z="stones")
    with pytest.raises(UnsupportedError, match="does not offer precision=float32"):
        spinbench.run(model, "gibbs", "fake", 10, precision="float32")
    with pytest.raises(UnsupportedError, match="runs on device=cpu; device=gpu was asked for"):
        spinbench.run(model, "gibbs", "fake", 10, device="gpu")
    ring = [((v, (v + 1) % 4), np.eye(3)) for v in range(4)]
    three = FactorGraph.from_log_tables([3] * 4, ring, name="potts")
    with pytest.raises(UnsupportedError, match="fake takes binary variables in pairs without hard zeros, which potts"):
        spinbench.run(three, "gibbs", "fake", 10)


@pytest.mark.parametrize("name", ["thrml", "blackjax", "numpyro", "pgmax"])
def test_libraries_on_jax_look_for_a_gpu(name: str) -> None:
    kind = registry.backend_class(name)
    assert "gpu" in kind.provides
    try:
        JaxBackend(device="gpu")
    except UnsupportedError:
        with pytest.raises(UnsupportedError, match=f"backend {name} finds no device=gpu here"):
            kind(device="gpu")
    else:
        kind(device="gpu")


PROGRAM = """
import itertools, math, sys, time
mode, model, mar, pr = sys.argv[1:]
if mode == "slow":
    time.sleep(30)
if mode == "failing":
    sys.exit("no memory left")
words = iter(open(model).read().split())
assert next(words) == "MARKOV"
sizes = [int(next(words)) for _ in range(int(next(words)))]
scopes = [[int(next(words)) for _ in range(int(next(words)))] for _ in range(int(next(words)))]
tables = [[float(next(words)) for _ in range(int(next(words)))] for _ in scopes]
sums = [[0.0] * k for k in sizes]
for state in itertools.product(*map(range, sizes)):
    weight = 1.0
    for scope, table in zip(scopes, tables):
        place = 0
        for v in scope:
            place = place * sizes[v] + state[v]
        weight *= table[place]
    for v, k in enumerate(state):
        sums[v][k] += weight
Z = sum(sums[0])
found = " ".join(f"{len(p)} " + " ".join(repr(q / Z) for q in p) for p in sums[: 1 if mode == "short" else None])
open(mar, "w").write(f"MAR\\n{len(sizes)} {found}\\n")
open(pr, "w").write(f"PR\\n{math.log10(Z)!r}\\n")
"""
PROGRAM_PLUGIN = """
from spinbench.backends.peers.library import LibraryBackend
from spinbench.backends.peers.program import ProgramAnswer

class Outside(LibraryBackend):
    name = "outside"

class OutsideExact(ProgramAnswer):
    command = ("PYTHON", "FILE", "good", "{model}", "{mar}", "{pr}")
"""
PROGRAM_POINTS = {"backends": {"outside": "Outside"}, "kernels": {"exact.outside": "OutsideExact"}}


@pytest.fixture
def kernel(install_plugin: Any, tmp_path: Path) -> Any:
    (tmp_path / "enumerate_states.py").write_text(PROGRAM)
    named = PROGRAM_PLUGIN.replace("PYTHON", sys.executable).replace("FILE", str(tmp_path / "enumerate_states.py"))
    install_plugin("outsideplugin", named, PROGRAM_POINTS)
    import outsideplugin  # type: ignore[import-not-found]

    return outsideplugin.OutsideExact


def test_a_program_answers_in_the_competitions_files(kernel: Any) -> None:
    tables = [((0, 1), np.arange(6.0).reshape(2, 3)), ((1, 2), np.ones((3, 2)) - np.eye(3, 2)), ((2, 0), np.eye(2))]
    for model in (generators.grid(2, 3, seed=1), FactorGraph.from_log_tables([2, 3, 2], tables, log_constant=0.5)):
        found, exact = spinbench.run(model, "exact", "outside", simplify=False), spinbench.exact(model)
        for mine, other in zip(found.marginals, exact.marginals, strict=True):
            np.testing.assert_allclose(mine, other, atol=1e-9)
        assert found.log_z == pytest.approx(exact.log_z, abs=1e-9)


@pytest.mark.parametrize(
    ("mode", "seconds", "error", "sentence"),
    [
        ("slow", 1.0, SpinbenchError, "outside took longer than the 1 s of its time limit"),
        ("failing", 60.0, SpinbenchError, "outside ended with status 1: no memory left"),
        ("short", 60.0, InvalidResultError, "outside wrote 4 numbers into its MAR file, not 13"),
    ],
)
def test_what_goes_wrong_outside_is_one_sentence(
    kernel: Any, mode: str, seconds: float, error: type[Exception], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "seconds", seconds)
    monkeypatch.setattr(kernel, "command", tuple(mode if part == "good" else part for part in kernel.command))
    with pytest.raises(error) as caught:
        spinbench.run(generators.grid(2, 2), "exact", "outside")
    assert str(caught.value) == sentence


def test_a_program_that_is_not_there_is_named(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "command", ("no_such_program", "{model}", "{mar}"))
    with pytest.raises(UnsupportedError, match="outside needs the program no_such_program, not found here"):
        spinbench.run(generators.grid(2, 2), "exact", "outside")

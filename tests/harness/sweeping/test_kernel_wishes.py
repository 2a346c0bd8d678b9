"""Which kernels a sweep asks: part of a cell where it is given, shown where it matters, compared on resuming."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from omegaconf import OmegaConf
from small_sweeps import stored, sweep

from spinbench import cli
from spinbench.history import axes, journal
from spinbench.measuring import cells, measure, provenance, records
from spinbench.measuring.records import CELL as CELL_PARTS
from spinbench.sweeping import composition

CELL = (
    "model=grid",
    "model.rows=2",
    "model.cols=2",
    "method=gibbs",
    "budget=samples",
    "budget.samples=200",
    "chains=4",
)
SOURCE = """
from spinbench.api import Kernel
from spinbench.inference.engine import ProgramEngine

class Partial(ProgramEngine, Kernel):
    @classmethod
    def refuses(cls, method, backend, model):
        return "scan=random is not written" if method.scan == "random" else ""

    def __init__(self, method, backend, model, tables):
        super().__init__(method.program(backend), backend, tables, method.reductions)
"""
POINTS = {"kernels": {"gibbs.numpy": "Partial"}}


@pytest.fixture
def folder(install_plugin: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two distributions with a kernel for gibbs on NumPy, for child processes too."""
    for name in ("firstplugin", "secondplugin"):
        found = install_plugin(name, SOURCE, POINTS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(found), os.environ.get("PYTHONPATH", "")]))
    return found


def cell_of(*overrides: str) -> dict[str, Any]:
    config = composition.plan([*CELL, *overrides], multirun=False).config
    parts = OmegaConf.to_container(OmegaConf.masked_copy(config, CELL_PARTS), resolve=True)
    return measure.extract_cell(cast("dict[str, Any]", parts))


@pytest.mark.usefixtures("folder")
def test_who_runs_is_seen_in_records_the_leaderboard_the_report_and_list(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ("backend=numpy", "backend.kernel=null,firstplugin", "method.scan=chromatic,random", "sweep_dir=out")
    assert sweep("-m", *CELL, *chosen) == 0
    shown = capsys.readouterr().out
    found = {(r["config"]["method"]["scan"], r["config"]["backend"].get("kernel")): r for r in stored("out")}
    results = {key: (r["result"]["tier"], r["result"]["kernel"]) for key, r in found.items()}
    assert results == {
        ("chromatic", None): ("generic", ""),
        ("random", None): ("generic", ""),
        ("chromatic", "firstplugin"): ("native", "firstplugin 1.0"),
        ("random", "firstplugin"): ("generic", ""),
    }
    refused = "kernel gibbs.numpy of firstplugin 1.0 refused: scan=random is not written"
    offered = "secondplugin 1.0 has a kernel gibbs.numpy, which is asked only with kernel=secondplugin"
    offered += " (backend.kernel in a sweep)"
    assert found["random", "firstplugin"]["result"]["notes"] == [refused]
    assert offered in found["chromatic", None]["result"]["notes"]
    assert "numpy(kernel=firstplugin)" in shown
    assert shown.count(f"gibbs on numpy(kernel=firstplugin) ran generic: {refused}") == 1
    assert shown.count(f"gibbs on numpy ran generic: {offered}") == 1
    assert found["chromatic", None]["plugins"] == {}
    assert found["chromatic", "firstplugin"]["plugins"]["kernels"]["distribution"] == "firstplugin"
    assert len({r["protocol"] for r in stored("out")}) == 4
    assert cli.main(["report", "out"]) == 0
    page = Path("out/report/report.html").read_text(encoding="utf-8")
    assert f"gibbs on numpy(kernel=firstplugin) ran generic: {refused}" in page
    capsys.readouterr()
    assert cli.main(["show", str(next(Path("out/records").iterdir()))]) == 0
    assert "notes" in capsys.readouterr().out
    assert cli.main(["list"]) == 0
    assert offered in capsys.readouterr().out


def test_swapped_kernels_are_measured_again_and_others_are_not(folder: Path) -> None:
    assert sweep("-m", *CELL, "backend=numpy", "backend.kernel=null,firstplugin", "sweep_dir=out") == 0
    before = {r["config"]["backend"].get("kernel"): r["id"] for r in stored("out")}
    source = folder / "firstplugin.py"
    source.write_text(source.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")
    assert sweep("--resume", "out") == 0
    after = [r for r in stored("out") if r["id"] not in before.values()]
    assert [r["config"]["backend"]["kernel"] for r in after] == ["firstplugin"]
    assert len(stored("out")) == 3


@pytest.mark.usefixtures("folder")
def test_kernels_that_are_asked_are_part_of_the_cell() -> None:
    assert provenance.foreign_plugins(cell_of("backend=numpy")) == {}
    assert set(provenance.foreign_plugins(cell_of("backend=numpy", "backend.kernel=SECONDPLUGIN"))) == {"kernels"}
    assert provenance.foreign_plugins(cell_of("backend=numpy", "backend.tier=generic")) == {}


def test_what_is_not_asked_for_leaves_the_cell_and_its_series_as_they_were() -> None:
    plain, generic = cell_of("backend=jax"), cell_of("backend=jax", "backend.tier=generic")
    assert plain["backend"] == {"name": "jax", "device": "cpu", "precision": "float64"}
    assert records.axis_labels(plain)["backend"] == "jax"
    assert cells.protocol_digest(plain) != cells.protocol_digest(generic)
    select = {"jax(tier=generic)": ("backend=jax", "backend.tier=generic")}
    backends = axes.Axis("backend", "backend", ("jax", *select), select)
    family = axes.Family("f", 1.0, (), (backends,), ())
    for cell, label in ((plain, "jax"), (generic, "jax(tier=generic)")):
        found = family.find_cell({"backend": records.axis_labels(cell)["backend"]})
        assert found == (label,)
        canonical = axes.canonical_configs(family, [found])[found]["backend"]
        assert journal.config_differences(cell["backend"], canonical) == []


def test_a_tier_can_be_swept(capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep("-m", *CELL, "backend=jax,numba", "backend.tier=generic,native", "sweep_dir=out") == 0
    assert {r["axes"]["backend"]: (r["status"], (r["result"] or {}).get("tier")) for r in stored("out")} == {
        "jax(tier=generic)": ("ok", "generic"),
        "jax(tier=native)": ("skipped", None),
        "numba(tier=generic)": ("ok", "generic"),
        "numba(tier=native)": ("ok", "native"),
    }
    shown = capsys.readouterr().out
    assert "chains are packed into words on device=gpu" in shown
    assert sweep(*CELL, "backend=jax", "backend.tier=fast", "sweep_dir=other") == 2
    assert "tier='fast' was given; native and generic are allowed" in capsys.readouterr().err
    assert not Path("other").exists()

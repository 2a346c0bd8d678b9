"""Discovery, tiers with reasons, broken and conflicting plugins, and what discovery may not import."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench import cli
from spinbench.errors import BrokenPluginError, SpinbenchError, UnknownNameError, UnsupportedError
from spinbench.inference import binding, registry
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import PairwiseModel
from spinbench.models.generators import grid

TOY = """
from dataclasses import dataclass
from spinbench.api import Backend, Method

@dataclass(frozen=True)
class Toy(Method):
    name = "toy"
    summary = "does nothing"
    level: int = 3
    requires = ("f64",)
    reductions = {}
    def plan(self, model): return ()
    def program(self, backend): raise AssertionError
    def estimate(self, model, tables, trace): raise AssertionError

@dataclass(frozen=True)
class Bare(Toy):
    name = "bare"
    program = Method.program

class Slow(Backend):
    name = "slow"
    provides = frozenset({"arrays", "f64"})

class Bound(Backend):
    name = "bound"
    provides = frozenset({"f64"})

class Missing(Slow):
    name = "missing"
    requires = ("no_such_module",)
    install = "pip install no-such-module"
"""
POINTS = {
    "methods": {"toy": "Toy", "bare": "Bare"},
    "backends": {"slow": "Slow", "bound": "Bound", "missing": "Missing"},
}


@pytest.fixture
def toy(install_plugin: Any) -> None:
    install_plugin("toyplugin", TOY, POINTS)


def test_built_ins_are_entry_points() -> None:
    assert {"numpy", "numba", "jax"} <= set(registry.names("backends"))
    assert {"exact", "gibbs", "block_gibbs", "dhmc"} <= set(registry.names("methods"))


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("method", "backend", "tier", "fragments"),
    [
        ("toy", "slow", "generic", []),
        ("toy", "numpy", "generic", []),
        (
            "toy",
            "bound",
            "unsupported",
            ["provides no arrays", "toy runs on cupy, jax, missing, numba, numpy, slow"],
        ),
        ("bare", "numpy", "unsupported", ["bare has no kernel for numpy"]),
        ("toy", "missing", "unavailable", ["pip install no-such-module"]),
    ],
)
def test_tiers_and_reasons(method: str, backend: str, tier: str, fragments: list[str]) -> None:
    how = registry.support(method, backend)
    assert how.tier == tier
    assert bool(how.reason) == bool(fragments)
    assert all(fragment in how.reason for fragment in fragments)


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("method", "backend", "settings", "error", "message"),
    [
        ("toy", "bound", {}, UnsupportedError, "provides no arrays"),
        ("toy", "slow", {"precision": "float32"}, UnsupportedError, "does not offer precision=float32"),
        ("toy", "slow", {"lvel": 4}, UnknownNameError, "no setting of method toy is named 'lvel'; did you mean level"),
        ("gibbs", "numpy", {"summary": "other"}, UnknownNameError, "no setting of method gibbs is named 'summary'"),
        # what belongs to a method and is no setting is not offered
        ("gibbs", "numpy", {"zzz": 4}, UnknownNameError, r"is named 'zzz'; known: ((?!name|summary)\w+, )*scan,"),
        ("gibs", "numpy", {}, UnknownNameError, "no method is named 'gibs'; did you mean gibbs"),
        ("gibbs", "zzz", {}, UnknownNameError, r"no backend is named 'zzz'; known: .*numpy"),
    ],
)
def test_refusals_come_before_any_work(
    method: str, backend: str, settings: dict[str, Any], error: type[SpinbenchError], message: str
) -> None:
    model = PairwiseModel.from_edges([0.0], [], [])
    with pytest.raises(error, match=message):
        spinbench.run(model, method, backend, 10, **settings)


@pytest.mark.usefixtures("toy")
def test_settings_are_given_by_name() -> None:
    assert registry.make_method("toy", {"level": 4}).level == 4  # type: ignore[attr-defined]


def test_compiled_programs_are_used_again_for_tables_of_the_same_shapes() -> None:
    """And for no other settings or shapes; a run's tables are its own."""

    def engine(method: Any, model: Any, backend: str = "jax") -> Any:
        return binding.bind(method, backend, model, method.plan(model), precision="float64").engine

    first, again = (engine(Gibbs(), grid(3, 3, seed=seed)) for seed in (0, 1))
    assert first._advance is again._advance
    assert not np.array_equal(first._tables.sweep.first[0].biases, again._tables.sweep.first[0].biases)
    assert engine(Gibbs(log_z="none"), grid(3, 3))._advance is not first._advance
    assert engine(Gibbs(), grid(3, 4))._advance is not first._advance
    assert engine(Gibbs(), grid(3, 3), "numpy")._advance is not engine(Gibbs(), grid(3, 3), "numpy")._advance


METHOD = "import dataclasses\n@dataclasses.dataclass\nclass Bad(Method): name = 'bad'; summary = 'none'"


@pytest.mark.parametrize(
    ("kind", "source", "message"),
    [
        ("backends", "raise RuntimeError('no CUDA\\nhere')", "RuntimeError: no CUDA here"),
        ("backends", "import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("backends", "raise SystemExit(3)", "SystemExit: 3"),
        ("backends", "Bad = 3", "is no subclass of spinbench.api.Backend"),
        ("backends", "class Bad(Backend): name = 'bad'", "lacks the class attribute provides"),
        ("backends", "class Bad(Backend): name = 'bad'; provides = 'f64'", "provides='f64'; a frozenset is needed"),
        (
            "backends",
            "class Bad(Backend): name = 'bad'; provides = frozenset({'f64'}); requires = 'numpy'",
            "requires='numpy'; a tuple is needed",
        ),
        (
            "backends",
            "class Bad(Backend): name = 'bad'; provides = frozenset({'arrays'})",
            "provides={'arrays'}; f32 or f64 has to be in it",
        ),
        (
            "backends",
            "class Bad(Backend): name = 'other'; provides = frozenset({'f64'})",
            "name='other'; both names have to be the same",
        ),
        ("methods", "class Bad(Backend): name = 'bad'", "is no subclass of spinbench.api.Method"),
        ("methods", "class Bad(Method): name = 'bad'", "lacks the class attribute summary"),
        ("methods", "class Bad(Method): name = 'bad'; summary = 'none'", "is no dataclass"),
        ("methods", f"{METHOD}; requires = 'grad'", "requires='grad'; a tuple is needed"),
        ("methods", f"{METHOD}; kind = 'chain'", "kind='chain'; sampler, draws, iteration, direct are allowed"),
        ("kernels", "Bad = 3", "is no class"),
        ("kernels", "class Bad: pass", "has no init and no advance; a spinbench.api.Kernel is needed"),
    ],
)
def test_what_is_no_plugin_is_refused_in_one_sentence_and_hurts_nobody_else(
    install_plugin: Any, kind: registry.Kind, source: str, message: str
) -> None:
    install_plugin("brokenplugin", f"from spinbench.api import Backend, Method\n{source}\n", {kind: {"bad": "Bad"}})
    pattern = rf"^{kind[:-1]} 'bad' \(brokenplugin:Bad, from brokenplugin 1\.0\) .*{message}$"
    with pytest.raises(BrokenPluginError, match=pattern):
        registry.load(kind, "bad")
    if kind != "kernels":
        pair = ("bad", "numpy") if kind == "methods" else ("gibbs", "bad")
        assert registry.support(*pair).tier == "broken"
    assert registry.support("gibbs", "numpy").runs


def test_two_owners_of_one_name_break_that_name_only(install_plugin: Any, capsys: pytest.CaptureFixture[str]) -> None:
    install_plugin("otherplugin", TOY, {"backends": {"slow": "Slow", "numpy": "Slow"}})
    install_plugin("yetanother", TOY, {"backends": {"slow": "Slow"}})
    with pytest.raises(BrokenPluginError, match=r"otherplugin 1\.0 and yetanother 1\.0 both register backend 'slow'"):
        registry.backend_class("slow")
    assert registry.support("gibbs", "slow").tier == "broken"
    assert registry.support("gibbs", "numpy").runs
    assert cli.main(["list"]) == 0
    message = "backend 'numpy' (otherplugin:Slow, from otherplugin 1.0) has the name of spinbench's own, which stays"
    assert message in capsys.readouterr().out


def test_coverage_imports_no_framework() -> None:
    code = (
        "import sys; from spinbench.inference import registry;"
        "[registry.support(m, b) for m in registry.names('methods') for b in registry.names('backends')];"
        "print([n for n in ('jax', 'numba', 'asv', 'hydra', 'matplotlib', 'networkx') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

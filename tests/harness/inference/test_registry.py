"""Discovery, tiers with reasons, broken and conflicting plugins, and what discovery may not import."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

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
    needs = frozenset({"arrays", "f64"})
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


def test_what_belongs_to_a_method_and_not_to_its_settings_is_not_offered() -> None:
    with pytest.raises(UnknownNameError, match="no setting of method gibbs is named 'zzzzzz'") as caught:
        registry.make_method("gibbs", {"zzzzzz": 4})
    offered = set(str(caught.value).partition("known: ")[2].split(", "))
    assert "scan" in offered
    assert not offered & {"name", "summary"}
    with pytest.raises(UnknownNameError, match="no setting of method gibbs is named 'summary'"):
        registry.make_method("gibbs", {"summary": "other"})


@pytest.mark.usefixtures("toy")
def test_tiers_and_reasons() -> None:
    assert registry.support("toy", "slow") == registry.Support("generic")
    assert registry.support("toy", "numpy").runs
    no_arrays = registry.support("toy", "bound")
    assert no_arrays.tier == "unsupported"
    assert "does not provide arrays" in no_arrays.reason
    assert "toy runs on cupy, jax, missing, numba, numpy, slow" in no_arrays.reason
    no_kernel = registry.support("bare", "numpy")
    assert no_kernel.tier == "unsupported"
    assert "bare has no kernel for numpy" in no_kernel.reason
    missing = registry.support("toy", "missing")
    assert missing.tier == "unavailable"
    assert "pip install no-such-module" in missing.reason


@pytest.mark.usefixtures("toy")
def test_refusals_come_before_any_work() -> None:
    model = PairwiseModel.from_edges([0.0], [], [])
    method = registry.make_method("toy", {})
    with pytest.raises(UnsupportedError, match="does not provide arrays"):
        binding.bind(method, "bound", model, (), precision="float64")
    with pytest.raises(UnsupportedError, match="does not offer precision=float32"):
        binding.bind(method, "slow", model, (), precision="float32")


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


@pytest.mark.usefixtures("toy")
def test_settings_are_checked_by_name() -> None:
    assert registry.make_method("toy", {"level": 4}).level == 4  # type: ignore[attr-defined]
    with pytest.raises(UnknownNameError, match="no setting of method toy is named 'lvel'; did you mean level"):
        registry.make_method("toy", {"lvel": 4})


def test_unknown_names_offer_the_closest() -> None:
    with pytest.raises(UnknownNameError, match="no method is named 'gibs'; did you mean gibbs"):
        registry.method_class("gibs")
    with pytest.raises(UnknownNameError, match=r"no backend is named 'zzz'; known: .*numpy"):
        registry.backend_class("zzz")


@pytest.mark.parametrize(
    "failure", ["raise RuntimeError('no CUDA\\nhere')", "import no_such_module", "raise SystemExit(3)"]
)
def test_a_broken_plugin_hurts_nobody_else(install_plugin: Any, failure: str) -> None:
    install_plugin("brokenplugin", failure, {"backends": {"bad": "Bad"}})
    how = registry.support("gibbs", "bad")
    assert how.tier == "broken"
    assert "brokenplugin 1.0" in how.reason
    assert "\n" not in how.reason
    with pytest.raises(BrokenPluginError):
        registry.backend_class("bad")
    assert registry.support("gibbs", "numpy").runs


METHOD = "import dataclasses\n@dataclasses.dataclass\nclass Bad(Method): name = 'bad'; summary = 'none'"


@pytest.mark.parametrize(
    ("kind", "source", "message"),
    [
        ("backends", "Bad = 3", "is no subclass of spinbench.api.Backend"),
        ("backends", "class Bad(Backend): name = 'bad'", "lacks the class attribute provides"),
        (
            "backends",
            "class Bad(Backend): name = 'bad'; provides = 'f64'",
            "provides='f64'; a frozenset is needed",
        ),
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
        ("methods", f"{METHOD}; needs = 'arrays'", "needs='arrays'; a frozenset is needed"),
        ("methods", f"{METHOD}; takes = 'all'", "takes='all'; pairwise, any, categorical, either are allowed"),
        ("kernels", "Bad = 3", "is no class"),
        ("kernels", "class Bad: pass", "has no init and no advance; a spinbench.api.Kernel is needed"),
    ],
)
def test_what_is_no_plugin_is_refused_in_one_sentence(
    install_plugin: Any, kind: registry.Kind, source: str, message: str
) -> None:
    install_plugin("brokenplugin", f"from spinbench.api import Backend, Method\n{source}\n", {kind: {"bad": "Bad"}})
    with pytest.raises(BrokenPluginError, match=rf"^{kind[:-1]} 'bad' \(brokenplugin:Bad, from .*\) .*{message}$"):
        registry.load(kind, "bad")
    if kind != "kernels":
        pair = ("bad", "numpy") if kind == "methods" else ("gibbs", "bad")
        assert registry.support(*pair).tier == "broken"


def test_two_owners_of_one_name_break_that_name_only(install_plugin: Any) -> None:
    install_plugin("otherplugin", TOY, {"backends": {"slow": "Slow", "numpy": "Slow"}})
    install_plugin("yetanother", TOY, {"backends": {"slow": "Slow"}})
    with pytest.raises(BrokenPluginError, match=r"otherplugin 1\.0 and yetanother 1\.0 both register backend 'slow'"):
        registry.backend_class("slow")
    assert registry.support("gibbs", "slow").tier == "broken"
    assert registry.support("gibbs", "numpy").runs  # spinbench's own, which stays


def test_list_names_who_takes_a_name(install_plugin: Any, capsys: pytest.CaptureFixture[str]) -> None:
    install_plugin("otherplugin", TOY, {"backends": {"numpy": "Slow"}})
    assert cli.main(["list"]) == 0
    said = "backend 'numpy' (otherplugin:Slow, from otherplugin 1.0) has the name of spinbench's own, which stays"
    assert said in capsys.readouterr().out


def test_errors_are_one_family() -> None:
    assert issubclass(UnknownNameError, SpinbenchError)


def test_coverage_imports_no_framework() -> None:
    code = (
        "import sys; from spinbench.inference import registry;"
        "[registry.support(m, b) for m in registry.names('methods') for b in registry.names('backends')];"
        "print([n for n in ('jax', 'numba', 'asv', 'hydra', 'matplotlib', 'networkx') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

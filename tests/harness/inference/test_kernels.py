"""Kernels that refuse, kernels of third parties, and what was asked for: what runs, and what is said of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import BrokenPluginError, SpinbenchError, UnknownNameError, UnsupportedError
from spinbench.inference import kernels, registry
from spinbench.inference.kernels import Wish
from spinbench.models import Factor, FactorGraph, Model, PairwiseModel
from spinbench.reporting import listing

PLUGIN = """
from spinbench.api import Backend, Kernel, PairwiseModel
from spinbench.backends.numpy import NumpyBackend
from spinbench.errors import UnsupportedError
from spinbench.inference.engine import ProgramEngine

class Own(NumpyBackend):
    name = "own"

class Partial(ProgramEngine, Kernel):
    '''The program itself, systematic scans alone.'''

    @classmethod
    def refuses(cls, method, backend, model):
        return "scan=random is not\\n written" if method.scan == "random" else ""

    def __init__(self, method, backend, model, tables):
        super().__init__(method.program(backend), backend, tables, method.reductions)

class Late(Partial):
    @classmethod
    def refuses(cls, method, backend, model):
        return ""

    def __init__(self, method, backend, model, tables):
        raise UnsupportedError("the tables are too wide")

class InFloat32(Partial):
    @classmethod
    def refuses(cls, method, backend, model):
        return "" if backend.precision == "float32" else f"{backend.precision} is not written"

class Small(Partial):
    @classmethod
    def refuses(cls, method, backend, model):
        return "" if isinstance(model, PairwiseModel) else "there are several states"

class Raises(Partial):
    @classmethod
    def refuses(cls, method, backend, model):
        raise ValueError("no such\\nfield")

class Says(Partial):
    @classmethod
    def refuses(cls, method, backend, model):
        return True

class Only(Kernel):
    @classmethod
    def refuses(cls, method, backend, model):
        return "never"
    def __init__(self, method, backend, model, tables): raise AssertionError
    def init(self, seed, start): raise AssertionError
    def advance(self, state, steps): raise AssertionError
"""
BACKEND = {"backends": {"own": "Own"}}
MODEL = PairwiseModel.from_edges([0.3, -0.2, 0.1, 0.0], [(0, 1), (1, 2), (2, 3)], [0.5, -0.4, 0.3])


def run(backend: str = "own", model: Model = MODEL, budget: int = 200, **options: Any) -> spinbench.Result:
    return spinbench.run(model, "gibbs", backend, budget, chains=8, **options)


def same(one: spinbench.Result, other: spinbench.Result) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.marginals, other.marginals, strict=True))


@pytest.fixture
def partial(install_plugin: Any) -> None:
    install_plugin("ownplugin", PLUGIN, {**BACKEND, "kernels": {"gibbs.own": "Partial"}})


@pytest.mark.usefixtures("partial")
def test_a_kernel_that_refuses_a_setting_leaves_the_program_in_place() -> None:
    native, other = run(), run(scan="random")
    assert (native.tier, native.kernel, native.notes) == ("native", "ownplugin 1.0", ())
    assert (other.tier, other.kernel) == ("generic", "")
    assert other.notes == ("kernel gibbs.own of ownplugin 1.0 refused: scan=random is not written",)
    assert other.notes[0] in repr(other)
    assert same(other, run("numpy", scan="random"))


@pytest.mark.usefixtures("partial")
def test_where_the_program_refuses_too_both_reasons_are_given() -> None:
    message = r"^kernel gibbs\.own .* refused: scan=random is not written; gibbs: threads=2 needs backend=numba"
    with pytest.raises(UnsupportedError, match=message):
        run(scan="random", threads=2, log_z="none")
    with pytest.raises(UnsupportedError, match=r"^gibbs: threads=2 needs backend=numba"):
        run(tier="generic", threads=2, log_z="none")


@pytest.mark.usefixtures("partial")
def test_a_tier_can_be_asked_for() -> None:
    generic = run(tier="generic")
    assert (generic.tier, generic.kernel, generic.notes) == ("generic", "", ())
    assert run(tier="native").tier == "native"
    with pytest.raises(UnsupportedError, match=r"ownplugin 1\.0 refused: scan=random is not written$"):
        run(tier="native", scan="random")
    with pytest.raises(UnsupportedError, match=r"gibbs has no kernel for numpy$"):
        run("numpy", tier="native")
    assert run("numba", tier="generic").tier == "generic"
    with pytest.raises(UnsupportedError, match=r"^exact has no generic program$"):
        spinbench.run(MODEL, "exact", "numba", tier="generic")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tier": "fast"}, "tier='fast' was given; native and generic are allowed"),
        ({"kernel": 3}, "kernel=3 was given; the name of a distribution is needed"),
        ({"kernel": "spinbench", "tier": "generic"}, "kernel=spinbench was given with tier=generic"),
    ],
)
def test_wishes_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpinbenchError, match=message):
        run("numba", **options)


def test_refusals_of_precisions_and_models(install_plugin: Any) -> None:
    points = {"backends": {"own": "Own"}, "kernels": {"gibbs.own": "InFloat32", "block_gibbs.own": "Small"}}
    install_plugin("ownplugin", PLUGIN, points)
    assert run(precision="float32").tier == "native"
    double = run()
    assert double.tier == "generic"
    assert "float64 is not written" in double.notes[0]


def test_models_of_several_states_are_asked_about_as_the_method_gets_them(install_plugin: Any) -> None:
    install_plugin("ownplugin", PLUGIN, {**BACKEND, "kernels": {"gibbs.own": "Small"}})
    table = np.array([[0.0, 0.7], [0.3, 0.0], [1.1, -0.7], [0.0, 0.0]])
    no_weight = Factor((0,), np.array([0.0, 0.2, 0.0, -np.inf]))
    states = FactorGraph([4, 2], [Factor((0, 1), table), no_weight])
    found = run(model=states, budget=2000)
    assert found.notes == (
        "simplified: 2 of 2 variables, 2 of 2 factors, 5 of 6 states are left",
        "kernel gibbs.own of ownplugin 1.0 refused: there are several states",
    )
    assert found.tier == "generic"
    exact = spinbench.exact(states, cache=False)
    for mine, truth in zip(found.marginals, exact.marginals, strict=True):
        np.testing.assert_allclose(mine, truth, atol=0.03)
    assert run().tier == "native"


def test_what_only_the_tables_tell_the_constructor_refuses(install_plugin: Any) -> None:
    install_plugin("ownplugin", PLUGIN, {**BACKEND, "kernels": {"gibbs.own": "Late"}})
    found = run()
    assert (found.tier, found.notes) == (
        "generic",
        ("kernel gibbs.own of ownplugin 1.0 refused: the tables are too wide",),
    )


def test_a_pair_without_a_program_is_refused_with_its_kernels_reason(install_plugin: Any) -> None:
    install_plugin("ownplugin", PLUGIN, {**BACKEND, "kernels": {"exact.own": "Only"}})
    with pytest.raises(UnsupportedError, match=r"^kernel exact\.own of ownplugin 1\.0 refused: never$"):
        spinbench.run(MODEL, "exact", "own")


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("Raises", r"kernel 'gibbs\.own' \(from ownplugin 1\.0\) failed in refuses: ValueError: no such field$"),
        ("Says", "answered refuses with True; a sentence is needed, or an empty text"),
    ],
)
def test_a_kernel_that_cannot_be_asked_is_broken_and_not_passed_over(
    install_plugin: Any, kernel: str, message: str
) -> None:
    install_plugin("ownplugin", PLUGIN, {**BACKEND, "kernels": {"gibbs.own": kernel}})
    with pytest.raises(BrokenPluginError, match=message):
        run()
    assert run(tier="generic").tier == "generic"


@pytest.fixture
def others(install_plugin: Any) -> None:
    """Two distributions with a kernel for one pair of spinbench's, one of which also replaces a kernel."""
    install_plugin("firstplugin", PLUGIN, {"kernels": {"gibbs.numpy": "Partial", "gibbs.numba": "Partial"}})
    install_plugin("Second_Plugin", PLUGIN, {"kernels": {"gibbs.numpy": "Partial"}})


def offered(who: str, kernel: str, name: str) -> str:
    return f"{who} has a kernel {kernel}, which is asked only with kernel={name} (backend.kernel in a sweep)"


@pytest.mark.usefixtures("others")
def test_nobody_takes_over_a_pair_of_others() -> None:
    own = run("numpy")
    assert (own.tier, own.kernel) == ("generic", "")
    assert own.notes == (
        offered("firstplugin 1.0", "gibbs.numpy", "firstplugin"),
        offered("Second_Plugin 1.0", "gibbs.numpy", "second-plugin"),
    )
    replaced = run("numba")
    assert (replaced.tier, replaced.kernel.partition(" ")[0]) == ("native", "spinbench")
    assert replaced.notes == (offered("firstplugin 1.0", "gibbs.numba", "firstplugin"),)
    assert run("numba", kernel="spinbench").notes == ()
    assert registry.support("gibbs", "numpy").tier == "generic"
    assert set(registry.support("gibbs", "numpy").notes) == set(own.notes)


@pytest.mark.usefixtures("others")
def test_a_distributions_kernel_is_asked_where_it_is_chosen() -> None:
    for name in ("second-plugin", "Second.Plugin"):
        chosen = run("numpy", kernel=name)
        assert (chosen.tier, chosen.kernel, chosen.notes) == ("native", "Second_Plugin 1.0", ())
    refused = run("numpy", kernel="firstplugin", scan="random")
    assert refused.tier == "generic"
    assert refused.notes == ("kernel gibbs.numpy of firstplugin 1.0 refused: scan=random is not written",)
    with pytest.raises(UnsupportedError, match="gibbs has no kernel for numba from second-plugin"):
        run("numba", kernel="second-plugin")
    with pytest.raises(UnknownNameError, match="no distribution with kernels is named 'firstplug'; did you mean"):
        run("numpy", kernel="firstplug")


def test_the_methods_distribution_is_asked_before_the_backends(install_plugin: Any) -> None:
    method = """
from dataclasses import dataclass
from typing import ClassVar
from spinbench.methods.gibbs.gibbs import Gibbs
from ownplugin import Partial

@dataclass(frozen=True)
class Mine(Gibbs):
    name: ClassVar[str] = "mine"
"""
    install_plugin("ownplugin", PLUGIN, {**BACKEND, "kernels": {"mine.own": "Partial"}})
    install_plugin("anotherplugin", method, {"methods": {"mine": "Mine"}, "kernels": {"mine.own": "Partial"}})
    assert spinbench.run(MODEL, "mine", "own", 100).kernel == "anotherplugin 1.0"
    assert spinbench.run(MODEL, "mine", "own", 100, kernel="ownplugin").kernel == "ownplugin 1.0"
    refused = spinbench.run(MODEL, "mine", "own", 100, scan="random")
    assert [note.split()[3] for note in refused.notes] == ["anotherplugin", "ownplugin"]
    assert refused.tier == "generic"


def test_kernels_of_no_pair_are_told(install_plugin: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert kernels.astray() == ()
    install_plugin("thirdplugin", PLUGIN, {"kernels": {"gibs.numpy": "Partial", "gibbs.numpy": "Partial"}})
    assert kernels.astray() == ("thirdplugin 1.0 has a kernel gibs.numpy: there is no such METHOD.BACKEND",)
    listing.show()
    assert kernels.astray()[0] in capsys.readouterr().out


@pytest.mark.usefixtures("others")
def test_kernels_alone_do_not_make_a_pair_run(install_plugin: Any) -> None:
    install_plugin("thirdplugin", PLUGIN, {"kernels": {"wmb.jax": "Only"}})
    how = registry.support("wmb", "jax")
    assert how.tier == "unsupported"
    assert how.reason.endswith(offered("thirdplugin 1.0", "wmb.jax", "thirdplugin"))
    assert registry.support("wmb", "jax", Wish(kernel="thirdplugin")).tier in ("native", "unavailable")

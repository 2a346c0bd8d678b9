"""Kernels that refuse, kernels of third parties, and what was asked for: what runs, and what is said of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import BrokenPluginError, SpinbenchError, UnknownNameError, UnsupportedError
from spinbench.inference import kernels, registry
from spinbench.inference.kernels import Wish
from spinbench.models import Factor, FactorGraph, PairwiseModel
from spinbench.reporting.commands import listing

SOURCE = """
from dataclasses import dataclass
from spinbench.api import Kernel, PairwiseModel
from spinbench.backends.numpy import NumpyBackend
from spinbench.errors import UnsupportedError
from spinbench.inference.engine import ProgramEngine
from spinbench.methods.gibbs.gibbs import Gibbs

class Own(NumpyBackend):
    name = "own"

@dataclass(frozen=True)
class Mine(Gibbs):
    name = "mine"

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

class Never(Kernel):
    @classmethod
    def refuses(cls, method, backend, model):
        return "never"
    def __init__(self, method, backend, model, tables): raise AssertionError
    def init(self, seed, start): raise AssertionError
    def advance(self, state, steps): raise AssertionError
"""
MODEL = PairwiseModel.from_edges([0.3, -0.2, 0.1, 0.0], [(0, 1), (1, 2), (2, 3)], [0.5, -0.4, 0.3])
STATES = FactorGraph(
    [4, 2],
    [
        Factor((0, 1), np.array([[0.0, 0.7], [0.3, 0.0], [1.1, -0.7], [0.0, 0.0]])),
        Factor((0,), np.array([0.0, 0.2, 0.0, -np.inf])),
    ],
)
# Two distributions with a kernel for one pair of spinbench's, one of which also replaces a kernel.
OTHERS = {
    "firstplugin": {"kernels": {"gibbs.numpy": "Partial", "gibbs.numba": "Partial"}},
    "Second_Plugin": {"kernels": {"gibbs.numpy": "Partial"}},
}
OF_A_METHOD = {
    "ownplugin": {"backends": {"own": "Own"}, "kernels": {"mine.own": "Partial"}},
    "anotherplugin": {"methods": {"mine": "Mine"}, "kernels": {"mine.own": "Partial"}},
}
NOT_WRITTEN = "scan=random is not written"

Plugins = dict[str, dict[str, dict[str, str]]]


def own(kernel: str, pair: str = "gibbs.own") -> Plugins:
    """A distribution with a backend and a kernel for it."""
    return {"ownplugin": {"backends": {"own": "Own"}, "kernels": {pair: kernel}}}


def refused(by: str, why: str, pair: str = "gibbs.own") -> str:
    return f"kernel {pair} of {by} 1.0 refused: {why}"


def offered(by: str, pair: str, name: str) -> str:
    return f"{by} 1.0 has a kernel {pair}, which is asked only with kernel={name} (backend.kernel in a sweep)"


@pytest.fixture
def install(install_plugin: Any) -> Any:
    def install_all(plugins: Plugins) -> None:
        for distribution, points in plugins.items():
            install_plugin(distribution, SOURCE, points)

    return install_all


def run(**options: Any) -> spinbench.Result:
    defaults = {"model": MODEL, "method": "gibbs", "backend": "own", "budget": 200, "chains": 8}
    return spinbench.run(**defaults | options)


@pytest.mark.parametrize(
    ("plugins", "options", "kernel", "notes"),
    [
        pytest.param(own("Partial"), {}, "ownplugin", (), id="a kernel runs"),
        pytest.param(own("Partial"), {"scan": "random"}, "", (refused("ownplugin", NOT_WRITTEN),), id="it refuses"),
        pytest.param(own("Partial"), {"tier": "generic"}, "", (), id="the program is asked for"),
        pytest.param(own("Partial"), {"tier": "native"}, "ownplugin", (), id="the kernel is asked for"),
        pytest.param(own("InFloat32"), {"precision": "float32"}, "ownplugin", (), id="its precision"),
        pytest.param(own("InFloat32"), {}, "", (refused("ownplugin", "float64 is not written"),), id="another one"),
        pytest.param(own("Small"), {}, "ownplugin", (), id="its model"),
        pytest.param(
            own("Small"),
            {"model": STATES},
            "",
            (
                "simplified: 2 of 2 variables, 2 of 2 factors, 5 of 6 states are left",
                refused("ownplugin", "there are several states"),
            ),
            id="a model as the method gets it",
        ),
        pytest.param(
            own("Late"), {}, "", (refused("ownplugin", "the tables are too wide"),), id="the constructor refuses"
        ),
        pytest.param(
            OTHERS,
            {"backend": "numpy"},
            "",
            (
                offered("firstplugin", "gibbs.numpy", "firstplugin"),
                offered("Second_Plugin", "gibbs.numpy", "second-plugin"),
            ),
            id="nobody takes over a pair",
        ),
        pytest.param(
            OTHERS,
            {"backend": "numba"},
            "spinbench",
            (offered("firstplugin", "gibbs.numba", "firstplugin"),),
            id="nobody replaces a kernel",
        ),
        pytest.param(OTHERS, {"backend": "numba", "kernel": "spinbench"}, "spinbench", (), id="spinbench's is chosen"),
        pytest.param(OTHERS, {"backend": "numpy", "kernel": "second-plugin"}, "Second_Plugin", (), id="one is chosen"),
        pytest.param(
            OTHERS, {"backend": "numpy", "kernel": "Second.Plugin"}, "Second_Plugin", (), id="spelt otherwise"
        ),
        pytest.param(
            OTHERS,
            {"backend": "numpy", "kernel": "firstplugin", "scan": "random"},
            "",
            (refused("firstplugin", NOT_WRITTEN, "gibbs.numpy"),),
            id="what is chosen refuses",
        ),
        pytest.param(OF_A_METHOD, {"method": "mine"}, "anotherplugin", (), id="the method's distribution is first"),
        pytest.param(OF_A_METHOD, {"method": "mine", "kernel": "ownplugin"}, "ownplugin", (), id="the backend's"),
        pytest.param(
            OF_A_METHOD,
            {"method": "mine", "scan": "random"},
            "",
            tuple(refused(by, NOT_WRITTEN, "mine.own") for by in ("anotherplugin", "ownplugin")),
            id="both refuse, in this order",
        ),
    ],
)
def test_which_kernel_runs_and_what_is_said_of_others(
    install: Any, plugins: Plugins, options: dict[str, Any], kernel: str, notes: tuple[str, ...]
) -> None:
    install(plugins)
    result = run(**options)
    assert (result.tier, result.kernel.partition(" ")[0]) == ("native" if kernel else "generic", kernel)
    assert result.notes == notes
    assert all(note in repr(result) for note in notes)


@pytest.mark.parametrize(
    ("plugins", "options", "error", "message"),
    [
        pytest.param(
            own("Partial"),
            {"scan": "random", "threads": 2, "log_z": "none"},
            UnsupportedError,
            rf"^kernel gibbs\.own .* refused: {NOT_WRITTEN}; gibbs: threads=2 needs backend=numba",
            id="the program refuses too",
        ),
        pytest.param(
            own("Partial"),
            {"tier": "generic", "threads": 2, "log_z": "none"},
            UnsupportedError,
            "^gibbs: threads=2 needs backend=numba",
            id="the program refuses",
        ),
        pytest.param(
            own("Partial"),
            {"tier": "native", "scan": "random"},
            UnsupportedError,
            rf"ownplugin 1\.0 refused: {NOT_WRITTEN}$",
            id="the kernel that is asked for",
        ),
        pytest.param(
            own("Never", "exact.own"),
            {"method": "exact"},
            UnsupportedError,
            r"^kernel exact\.own of ownplugin 1\.0 refused: never$",
            id="a pair without a program",
        ),
        pytest.param(
            own("Raises"),
            {},
            BrokenPluginError,
            r"kernel 'gibbs\.own' \(from ownplugin 1\.0\) failed in refuses: ValueError: no such field$",
            id="a kernel that cannot be asked",
        ),
        pytest.param(
            own("Says"),
            {},
            BrokenPluginError,
            "answered refuses with True; a sentence is needed, or an empty text",
            id="a kernel that answers with no text",
        ),
        pytest.param(
            {}, {"backend": "numpy", "tier": "native"}, UnsupportedError, "gibbs has no kernel for numpy$", id="none"
        ),
        pytest.param(
            {},
            {"method": "exact", "backend": "numba", "tier": "generic"},
            UnsupportedError,
            "^exact has no generic program$",
            id="no program",
        ),
        pytest.param(
            OTHERS,
            {"backend": "numba", "kernel": "second-plugin"},
            UnsupportedError,
            "gibbs has no kernel for numba from second-plugin",
            id="no kernel of a distribution",
        ),
        pytest.param(
            OTHERS,
            {"backend": "numpy", "kernel": "firstplug"},
            UnknownNameError,
            "no distribution with kernels is named 'firstplug'; did you mean",
            id="no such distribution",
        ),
        pytest.param(
            {},
            {"backend": "numba", "tier": "fast"},
            SpinbenchError,
            "tier='fast' was given; native and generic are allowed",
            id="no tier",
        ),
        pytest.param({}, {"kernel": 3}, SpinbenchError, "kernel=3 was given; the name of a", id="no name"),
        pytest.param(
            {},
            {"backend": "numba", "kernel": "spinbench", "tier": "generic"},
            SpinbenchError,
            "kernel=spinbench was given with tier=generic",
            id="a kernel and no kernel",
        ),
    ],
)
def test_what_is_refused(
    install: Any, plugins: Plugins, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    install(plugins)
    with pytest.raises(error, match=message):
        run(**options)


def test_the_program_in_a_kernels_place_is_the_same(install: Any) -> None:
    install(own("Partial"))
    one, other = (run(backend=backend, scan="random") for backend in ("own", "numpy"))
    np.testing.assert_array_equal(one.marginals, other.marginals)


def test_a_pair_tells_of_kernels_that_it_does_not_ask(install: Any) -> None:
    """And they alone do not make a pair run."""
    install({"thirdplugin": {"kernels": {"wmb.jax": "Never", "gibbs.numpy": "Never"}}})
    how = registry.support("gibbs", "numpy")
    assert (how.tier, how.notes) == ("generic", (offered("thirdplugin", "gibbs.numpy", "thirdplugin"),))
    how = registry.support("wmb", "jax")
    assert how.tier == "unsupported"
    assert how.reason.endswith(offered("thirdplugin", "wmb.jax", "thirdplugin"))
    assert registry.support("wmb", "jax", Wish(kernel="thirdplugin")).tier in ("native", "unavailable")


def test_kernels_of_no_pair_are_told(install: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert kernels.astray() == ()
    install({"thirdplugin": {"kernels": {"gibs.numpy": "Partial", "gibbs.numpy": "Partial"}}})
    assert kernels.astray() == ("thirdplugin 1.0 has a kernel gibs.numpy: there is no such METHOD.BACKEND",)
    listing.run_list()
    assert kernels.astray()[0] in capsys.readouterr().out

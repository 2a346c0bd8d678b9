"""What the harness asks of plugins beside running them is asked of a plugin's method and backend, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.history.regression_test import measurements
from spinbench.inference import kernels
from spinbench.inference.advising import candidates, portfolio
from spinbench.measuring import environment, isolation
from spinbench.models import generators
from spinbench.reporting import plotting

PLUGIN = """
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
import numpy as np
from spinbench.api import BackendProfile, Estimate, Kernel, Method, MethodProfile
from spinbench.testing import NumpyBackend


def set_variables(variables, device):
    variables["MINE"] = device


class Mine(NumpyBackend):
    name = "mine"
    profile = BackendProfile(
        priority=9, packages=("pytest",), environment=set_variables, compiled="MINE_CACHE", style=7
    )


class Silent(NumpyBackend):
    name = "silent"


@dataclass(frozen=True)
class Coins(Method):
    size: int = 1
    name: ClassVar[str] = "coins"
    summary: ClassVar[str] = "fair coins"
    kind = "draws"
    profile = MethodProfile(family="coins", variants=({"size": 2}, {"size": 3}), starts={"mine": 50},
        start_settings={"size": 3}, style=11)
    reductions = {"x": "last"}

    def plan(self, model):
        return ()

    def estimate(self, model, tables, trace):
        return Estimate(draws=(np.ones((model.num_variables, 64), int), None))


class CoinsKernel(Kernel):
    def __init__(self, method, backend, model, tables):
        self.shape = model.num_variables

    def init(self, seed, start):
        return start

    def advance(self, state, steps):
        return state, {"x": np.ones(state.shape)}
"""
COUPLING = """
from types import SimpleNamespace
from spinbench.api import Coupling


class CoinsCoupling(Coupling):
    name, backends = "coins", ("mine",)

    def __init__(self, model, scan):
        self.scan = scan

    def start(self, seed, x, y):
        return SimpleNamespace(met=np.full(x.shape[1], -1))

    def advance(self, pairs, lag, first, last):
        pairs.met[:] = lag + 1
"""
POINTS = {
    "couplings": {"coins": "CoinsCoupling", "exact": "Coins"},
    "methods": {"coins": "Coins"},
    "backends": {"mine": "Mine", "silent": "Silent"},
    "kernels": {"coins.mine": "CoinsKernel"},
}


@pytest.fixture(autouse=True)
def plugin(install_plugin: Callable[..., Path]) -> None:
    install_plugin("spinbench_coins", PLUGIN + COUPLING, POINTS)


def test_advise_races_its_variants_as_one_family() -> None:
    own = [each for each in candidates.default(portfolio.read_table().methods) if each.method == "coins"]
    assert [each.label for each in own] == ["coins(size=2).mine", "coins(size=3).mine"]
    assert {each.kind for each in own} == {"coins"}


def test_its_draws_are_starts_of_others() -> None:
    model = generators.grid(2, 2)
    result = spinbench.run(model, "gibbs", "numpy", 3, burn_in=0, chains=4, start="coins")
    assert result.samples == 3
    with pytest.raises(SpinbenchError, match=r"^start='bp' was given; 'coins' or 'wmb', or an array"):
        spinbench.run(model, "gibbs", "numpy", 3, start="bp")


def test_its_backend_is_asked_in_its_place_and_who_says_nothing_last() -> None:
    own = [name for name in kernels.backends_by_preference() if name not in ("cupy", "torch")]
    assert own == ["mine", "numba", "numpy", "jax", "silent"]


def test_versions_of_its_packages_are_recorded_and_compared() -> None:
    assert environment.describe()["versions"]["pytest"] == pytest.__version__
    assert "pytest" in measurements.names_of_machine_parts()


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_a_worker_has_its_environment_and_the_folder_of_its_code(device: str, tmp_path: Path) -> None:
    variables = isolation.worker_environment(device)
    assert variables["MINE"] == device
    assert Path(variables["MINE_CACHE"]).parts[-2:] == ("compiled", "mine")
    assert isolation.worker_environment(device, tmp_path)["MINE_CACHE"] == str(tmp_path / "MINE_CACHE")


def test_plots_give_it_the_look_that_it_chose() -> None:
    assert plotting.method_colour("coins") == plotting.METHOD_STYLES[11][1]
    row = NamedTuple("Row", [("method", str), ("backend", str)])("coins", "mine")
    assert plotting.PlotStyles.from_rows([row]).lines == {"mine": plotting.BACKEND_STYLES[7]}  # type: ignore[list-item]


def test_mixing_couples_its_chains() -> None:
    mixing = spinbench.mixing(generators.grid(2, 2), "coins", "20 s")
    assert (mixing.method, mixing.backend, mixing.sweeps) == ("coins", "mine", 1)
    with pytest.raises(SpinbenchError, match="coupled sweeps run on mine"):
        spinbench.mixing(generators.grid(2, 2), "coins", backend="numpy")
    with pytest.raises(SpinbenchError, match=r"is no subclass of spinbench\.api\.Coupling"):
        spinbench.mixing(generators.grid(2, 2), "exact")
    with pytest.raises(SpinbenchError, match="coins, exact, gibbs is coupled, and no other"):
        spinbench.mixing(generators.grid(2, 2), "pt")

"""The suite on kernels: those of another distribution, those that refuse, and settings that they do not heed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest

from spinbench import cli
from spinbench.testing import checks, method_checks
from spinbench.testing.check import Check, CheckError

SOURCE = """
from spinbench.api import Kernel
from spinbench.inference.engine import ProgramEngine

class Right(ProgramEngine, Kernel):
    refused = "chromatic"

    @classmethod
    def refuses(cls, method, backend, model):
        return f"scan={method.scan} is not written" if method.scan == cls.refused else ""

    def __init__(self, method, backend, model, tables):
        super().__init__(method.program(backend), backend, tables, method.reductions)

class Wrong(Right):
    refused = "random"

    def advance(self, state, steps):
        state, seen = super().advance(state, steps)
        return state, {name: array * 0.9 for name, array in seen.items()}
"""


@pytest.fixture
def others(install_plugin: Callable[..., Path]) -> None:
    install_plugin("refusing", SOURCE, {"kernels": {"gibbs.numpy": "Right"}})
    install_plugin("wrong", SOURCE, {"kernels": {"gibbs.numpy": "Wrong"}})


def named(found: list[Check], name: str) -> Check:
    return next(check for check in found if check.name == name)


def gibbs(**wish: Any) -> list[Check]:
    return method_checks("gibbs", "numpy", chains=256, **wish)


@pytest.mark.usefixtures("others")
def test_the_kernel_that_is_chosen_is_checked() -> None:
    assert "kernel" not in {check.name for check in gibbs()}
    named(gibbs(), "accuracy, dense")()
    chosen = gibbs(kernel="wrong")
    named(chosen, "kernel")()
    with pytest.raises(CheckError, match="are off by"):
        named(chosen, "accuracy, dense")()
    with pytest.raises(CheckError, match="marginals whose sums are not 1"):
        named(chosen, "accuracy, three states")()
    named(chosen, "scan=random")()  # refused: the program


@pytest.mark.usefixtures("others")
def test_where_it_refuses_it_is_said_that_the_program_is_checked() -> None:
    chosen = gibbs(kernel="refusing")
    message = r"the program is checked: kernel gibbs\.numpy of refusing 1\.0 refused: scan=chromatic is not written"
    with pytest.raises(SkipTest, match=message):
        named(chosen, "kernel")()
    named(chosen, "accuracy, dense")()
    named(gibbs(kernel="refusing", scan="random"), "kernel")()


@pytest.mark.usefixtures("others")
def test_programs_and_kernels_alone() -> None:
    generic = checks("numba", "gibbs", tier="generic")
    names = [check.name for check in generic if check.subject == "gibbs.numba"]
    assert "accuracy, dense" in names
    assert not {"refusal", "kernel and program"} & set(names)
    assert [check.name for check in gibbs(tier="native")] == ["refusal"]
    named(gibbs(tier="native"), "refusal")()
    named(method_checks("gibbs", "numba", kernel="wrong"), "refusal")()


@pytest.mark.usefixtures("others")
def test_the_command_line_chooses_too(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", "--method", "exact", "--backend", "numba", "--chains", "64"]
    assert cli.main([*words, "--kernel", "nobody"]) == 2
    assert "no distribution with kernels is named 'nobody'" in capsys.readouterr().err
    assert cli.main([*words, "--tier", "generic"]) == 0
    assert "exact.numba │ passed  │ 1 check" in capsys.readouterr().out


DEAF = """
from dataclasses import replace
from spinbench.inference.engine import ProgramEngine

def Deaf(method, backend, model, tables):
    heard = replace(method, leapfrog_steps=5) if {deaf} else method
    return ProgramEngine(heard.program(backend), backend, tables, method.reductions)
"""


@pytest.mark.parametrize("deaf", [True, False])
def test_a_kernel_that_does_not_heed_a_setting_is_found(install_plugin: Callable[..., Path], deaf: bool) -> None:
    name = f"plugin_{'deaf' if deaf else 'hearing'}"
    install_plugin(name, DEAF.format(deaf=deaf), {"kernels": {"dhmc.numpy": "Deaf"}})
    found = method_checks("dhmc", "numpy", kernel=name.replace("_", "-"))
    (check,) = [check for check in found if check.name == "settings that count"]
    message = "leapfrog_steps=.* give the same to the last bit; the program on numpy heeds it"
    with pytest.raises(
        AssertionError if deaf else SkipTest, match=message if deaf else "by itself none of draws changes"
    ):
        check()


@pytest.mark.parametrize(
    ("bug", "error", "message"),
    [
        ("one is not read", AssertionError, r"pace=1\.0, .* give the same to the last bit: nothing reads pace$"),
        ("", SkipTest, "by itself none of way, pace, max_bytes, unroll, rounds changes"),
    ],
)
def test_a_program_that_does_not_read_a_setting_is_found(
    install_plugin: Callable[..., Path], bug: str, error: type[Exception], message: str
) -> None:
    """Limits, speed and what counts beside another setting alone are no alarm."""
    source = Path(__file__).with_name("planted_programs.py").read_text()
    install_plugin("planted_programs", source, {"methods": {"deaf": "Deaf"}})
    (check,) = [check for check in method_checks("deaf", "numpy", bug=bug) if check.name == "settings that count"]
    with pytest.raises(error, match=message):
        check()

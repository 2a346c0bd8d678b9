"""Settings that a kernel does not heed, or that nothing reads, are found; others that change nothing are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest import SkipTest

import pytest

from spinbench.testing import method_checks

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

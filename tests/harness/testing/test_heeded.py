"""Settings that a kernel does not heed are found; those that change nothing in a few steps are named."""

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

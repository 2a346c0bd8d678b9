"""Kernels of all forms run in the debug mode on small models: none of their accesses breaks a promise."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import checked_kernels
import pytest

from spinbench.backends.numba import machine_code


def _marked(family: str) -> Any:
    marks = [pytest.mark.xdist_group(f"promises of {family}")]  # their compilation is shared out
    return pytest.param(family, marks=[*marks, pytest.mark.slow])


@pytest.mark.parametrize("family", [_marked(family.__name__) for family in checked_kernels.FAMILIES])
def test_kernels_keep_their_promises(family: str) -> None:
    environment = {**os.environ, machine_code.CHECKS_VARIABLE: "1"}
    command = [sys.executable, checked_kernels.__file__, family]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]

"""Vectors compiled for processors with fewer features than this one's: look-ups and gathers take other paths there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest

HERE = llvm.get_host_cpu_features() if llvm.get_process_triple().startswith("x86_64") else {}
# What a processor has to have to run code for this one.
FEATURE = {"haswell": "avx2", "x86-64": "sse2"}
NARROW = """
from numba.core.registry import cpu_target
print(cpu_target.target_context.codegen().magic_tuple())
"""


def compiled_for(processor: str, *command: str) -> str:
    environment = {**os.environ, "NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""}
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("processor", FEATURE)
def test_vectors_do_not_ask_for_the_features_of_this_machine(processor: str) -> None:
    if not HERE.get(FEATURE[processor]):
        pytest.skip(f"this machine runs no code for {processor}")
    assert "avx512bw" not in compiled_for(processor, "-c", NARROW)
    tests = str(Path(__file__).with_name("test_vectors.py"))
    assert " passed" in compiled_for(processor, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", tests)

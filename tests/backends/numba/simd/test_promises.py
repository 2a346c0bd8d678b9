"""Promises that raw addresses ask of the caller: broken on purpose, kept by all kernels, and on older processors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import broken_kernels
import checked_kernels
import llvmlite.binding as llvm
import numba as nb
import numpy as np
import pytest
from numba.core.errors import TypingError

from spinbench.backends.numba import machine_code
from spinbench.backends.numba.simd import memory as mem
from spinbench.backends.numba.simd.memory import address, load
from spinbench.backends.numba.simd.vector_sums import add_rows, store_sums, zero_sums

KEPT = [
    "lifetime, kept",
    "bounds, last",
    "bounds, moved, last",
    "bounds, vector, last",
    "bounds, gathered, last",
    "bounds, looked up, last",
    "bounds, margin",
    "bounds, margin of a view",
]


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    """What became of each of the broken kernels in the debug mode."""
    environment = {**os.environ, machine_code.CHECKS_VARIABLE: "1"}
    command = [sys.executable, broken_kernels.__file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("name", [name for name, *_ in broken_kernels.attempts()])
def test_what_breaks_a_promise_is_found_and_named(name: str, outcomes: dict[str, str]) -> None:
    if name in KEPT:
        assert outcomes[name] == "passed"
    else:
        assert outcomes[name].startswith(f"{name.partition(',')[0]}: ")


def test_the_message_says_where(outcomes: dict[str, str]) -> None:
    assert "stored_element" in outcomes["bounds, stored"]


# Types and contiguity are looked at when a kernel is compiled, in every mode


@nb.njit
def _store(out, x):
    mem.store(address(out, 0), 0, mem.load_vector(address(x, 0), 0))


@nb.njit
def _gather(out, x):
    mem.store(address(out, 0), 0, mem.gather_indexed(address(out, 0), address(x, 0), 0))


@nb.njit
def _look_up(out, x):
    mem.store(address(out, 0), 0, mem.look_up(address(x, 0), 0, mem.load_vector(address(out, 0), 0)))


@nb.njit
def _multiply(out, x):
    sums = add_rows(zero_sums(out[0], (0,)), mem.load_vector(address(out, 0), 0), address(x, 0), 0, 0)
    store_sums(address(out, 0), 0, 0, sums, (0,))


@pytest.mark.parametrize(
    ("kernel", "out", "wrong"),
    [
        (_store, np.float32, np.float64),
        (_store, np.uint32, np.int32),
        (_gather, np.float32, np.int64),
        (_look_up, np.uint16, np.int16),
        (_multiply, np.float64, np.float32),
    ],
)
def test_an_address_gives_elements_of_its_own_type_alone(kernel: Any, out: type, wrong: type) -> None:
    with pytest.raises(TypingError, match=r"type: an access to .* through an address of"):
        kernel(np.ones(32, dtype=out), np.ones(32, dtype=wrong))


@nb.njit
def _first(x):
    return load(address(x, 0), 0)


def test_no_address_is_taken_of_an_array_with_gaps() -> None:
    assert _first(np.ones((4, 4))[1:]) == 1
    with pytest.raises(TypingError, match="contiguity: no address is taken of"):
        _first(np.ones((4, 4))[:, 1])


def test_machine_code_with_checks_is_kept_apart(tmp_path: Path) -> None:
    """Numba itself would take either for the other."""
    code = "from spinbench.backends.numba import machine_code; print(machine_code.numba_folder())"
    environment = {**os.environ, "SPINBENCH_CACHE_DIR": str(tmp_path)}
    folders = set()
    for value in ("", "0", "1"):
        environment[machine_code.CHECKS_VARIABLE] = value
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        folders.add(done.stdout)
    assert len(folders) == 2


def _marked(family: str) -> Any:
    marks = [pytest.mark.xdist_group(f"promises of {family}")]  # their compilation is shared out
    return pytest.param(family, marks=[*marks, pytest.mark.slow])


@pytest.mark.parametrize("family", [_marked(family.__name__) for family in checked_kernels.FAMILIES])
def test_kernels_keep_their_promises(family: str) -> None:
    environment = {**os.environ, machine_code.CHECKS_VARIABLE: "1"}
    command = [sys.executable, checked_kernels.__file__, family]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


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

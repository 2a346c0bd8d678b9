"""A plugin whose method misbehaves on request, in this process and in the workers that it starts."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FAULTY = '''
import contextlib, os, re, resource, signal, sys, time
from dataclasses import dataclass
from typing import NamedTuple
import numpy as np
from spinbench.api import Estimate, Method, Program, effective_sample_size, split_r_hat, standard_error
from spinbench.errors import UnsupportedError


class Tables(NamedTuple):
    biases: np.ndarray


@dataclass(frozen=True)
class Faulty(Method):
    """Independent draws of each variable, right for models without couplings; `how` says what goes wrong."""

    name = "faulty"
    summary = "goes wrong on request"
    how: str = "well"

    @property
    def reductions(self):
        return {"s": "sum"}

    def plan(self, model):
        if self.how == "raise":
            raise RuntimeError("asked\\nto fail")
        if self.how == "refuse":
            raise UnsupportedError("faulty refuses this model")
        if self.how == "memory":
            raise MemoryError("asked for too much")
        if self.how == "exit":
            sys.exit(3)
        if self.how == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.how == "kill":
            if os.fork() == 0:
                time.sleep(600)
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "hang":
            time.sleep(600)
        if self.how == "hold":
            re.match("(a+)+$", "a" * 99 + "b")  # for ever, and no other thread runs
        if self.how == "shout":
            raise RuntimeError("all of it " * 100_000)
        if self.how == "junk":
            for number in range(3, 64):
                with contextlib.suppress(OSError):
                    os.write(number, b"[1]\\n")
        if self.how == "slow":
            time.sleep(0.5)
        if self.how == "lower limits":
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        if self.how == "leave":
            os.chdir("/")
        if self.how == "strict arithmetic":
            np.seterr(all="raise")
        if self.how == "chatter":
            print("{}", flush=True)
            os.write(1, b"not json\\n")
            sys.stdin.read()
        return Tables(model.biases)

    def program(self, backend):
        def step(key, tables, s):
            p = 1 / (1 + backend.xp.exp(-tables.biases[:, None]))
            return backend.xp.astype(backend.uniform(key, s.shape) < p, backend.real)

        return Program(lambda key, tables, start: start, step, lambda tables, s: {"s": s})

    def estimate(self, model, tables, trace):
        series = trace.series("s")
        marginals, errors = trace.mean("s").mean(-1), standard_error(series)
        if self.how == "nan":
            marginals = marginals * np.nan
        return Estimate(
            marginals=marginals,
            marginals_se=errors,
            ess=effective_sample_size(marginals, errors, trace.samples * series.shape[-1]),
            r_hat=split_r_hat(series),
        )
'''


@pytest.fixture(autouse=True)
def own_surroundings(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches are shared by the tests of a run only; results never reach the history of this checkout."""
    monkeypatch.setenv("SPINBENCH_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "spinbench-cache"))
    monkeypatch.setenv("SPINBENCH_HISTORY", str(tmp_path))


@pytest.fixture
def faulty(install_plugin: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installs the method `faulty`, for child processes too; returns the folder of the plugin."""
    folder = install_plugin("spinbench_faulty", FAULTY, {"methods": {"faulty": "Faulty"}})
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))
    return folder


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """`small_disk(size)`: a folder on a file system of its own; again: the same with another size."""
    folder = tmp_path / "small"

    def mount(size: str) -> Path:
        options = f"remount,size={size}" if folder.is_mount() else f"size={size}"
        folder.mkdir(exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, check=False)
        except OSError:
            pytest.skip("there is no mount")
        if done.returncode:
            pytest.skip("no file system may be mounted here")
        return folder

    yield mount
    if folder.is_mount():
        subprocess.run(["umount", "-l", str(folder)], check=True)

"""An external program to start from: a file goes in, a file comes out. Replace the command and the reading.

`spinbench check --method mine --backend numpy` says what is still wrong.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, NamedTuple

import numpy as np

import spinbench
from spinbench.api import (
    Array,
    Backend,
    Estimate,
    Key,
    Method,
    Model,
    Program,
    Reduction,
    Trace,
    to_factor_graph,
)
from spinbench.errors import InvalidResultError, SpinbenchError, UnsupportedError

# Replace it by your program's; what stands for one here is the last function of this file.
COMMAND = (sys.executable, str(Path(__file__).resolve()))
# That a call may take.
MAX_SECONDS = 60.0


class Tables(NamedTuple):
    """What the program is given, in NumPy arrays.

    sizes: (N,) int64, K_v. file: (bytes,) uint8, the model in UAI's format.
    """

    sizes: Array
    file: Array


class State(NamedTuple):
    """What the program answered. The chains' axis is the last: an exact answer has one.

    log_z: (1,). marginals: (Σ K_v, 1), p(x_v = k) of all variables one after another.
    """

    log_z: Array
    marginals: Array


@dataclass(frozen=True)
class MyMethod(Method[Tables]):
    """Exact log Z and marginals by a program of others."""

    name: ClassVar[str] = "mine"  # name of the entry point
    summary: ClassVar[str] = "exact log Z and marginals by a program"
    kind = "direct"  # one call gives the whole answer
    model_form = "categorical"  # variables of any number of states

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """As `State`."""
        return dict.fromkeys(State._fields, "last")

    def plan(self, model: Model) -> Tables:
        """Refuse here what the program does not take."""
        if shutil.which(COMMAND[0]) is None:
            raise UnsupportedError(f"method mine needs the program {COMMAND[0]}, which is not found")
        graph = to_factor_graph(model)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.uai"
            spinbench.save(graph, path)
            return Tables(np.array(graph.cardinalities), np.frombuffer(path.read_bytes(), np.uint8))

    def program(self, backend: Backend) -> Program[Tables, State]:
        """A step on the host, on every backend."""

        def init(key: Key, tables: Tables, start: Array) -> State:
            return State(np.empty(1), np.empty((tables.sizes.sum(), 1)))

        def step(key: Key, tables: Tables, state: State) -> State:
            return _ask(tables)

        def observe(tables: Tables, state: State) -> dict[str, Array]:
            return state._asdict()

        return Program(init, step, observe, compiled=False)

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """p(s = 1) where all variables have two states, else an array of each variable."""
        flat = trace.total("marginals")[:, 0]
        marginals = np.split(flat, np.cumsum(tables.sizes)[:-1])
        binary = bool((tables.sizes == 2).all())
        return Estimate(
            marginals=flat[1::2] if binary else marginals,
            log_z=float(trace.total("log_z")[0]),
            log_z_kind="exact",
        )


def _ask(tables: Tables) -> State:
    with TemporaryDirectory() as folder:
        model, answer = Path(folder) / "model.uai", Path(folder) / "answer.json"
        model.write_bytes(tables.file.tobytes())
        command = [*COMMAND, str(model), str(answer)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=MAX_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise SpinbenchError(f"method mine took longer than {MAX_SECONDS:g} s") from None
        if done.returncode:
            last = (done.stderr.strip() or "without a word").splitlines()[-1]
            raise SpinbenchError(f"method mine: {COMMAND[0]} ended with status {done.returncode}: {last}")
        content = json.loads(answer.read_text())
    marginals = np.concatenate(content["marginals"])
    if len(marginals) != tables.sizes.sum():
        raise InvalidResultError(f"method mine: the program answers {len(marginals)} numbers")
    return State(np.array([content["log_z"]]), marginals[:, None])


def main(model: str, answer: str) -> None:
    """Stand for a program: read a UAI file, write log Z and all marginals."""
    result = spinbench.exact(spinbench.load(model))
    assert result.marginals is not None
    tables = [np.array([1 - p, p]) if np.ndim(p) == 0 else p for p in result.marginals]
    Path(answer).write_text(json.dumps({"log_z": result.log_z, "marginals": [table.tolist() for table in tables]}))


if __name__ == "__main__":
    main(*sys.argv[1:])

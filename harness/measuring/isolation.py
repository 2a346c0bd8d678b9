"""Child processes that measure: one at a time on a processor core of its own, replaced after anything goes wrong."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spinbench.foundation.child import last_words
from spinbench.foundation.folders import cache_folder, ensure_folder
from spinbench.inference import kernels
from spinbench.measuring import environment, process_state

# Largest number of idle workers that are kept: a JAX process holds about 300 MB.
MAX_IDLE_WORKERS = 4
# Keys of a backend's configuration that decide what a worker has compiled.
COMPILATION_KEYS = ("device", "precision", "tier", "kernel")
# Longest start of a process in seconds, which does not count for its first cell.
MAX_START_SECONDS = 120.0
# Largest answer of a worker in bytes; a larger one counts as invalid.
MAX_ANSWER_BYTES = 1 << 28
# Bytes of a dead worker's error output that the record keeps.
MAX_LOG_BYTES = 4000


class WorkerDiedError(Exception):
    """The process ended or was killed before it answered; the message is a sentence for the record."""


class WorkerPool:
    """Warm workers, one for each (method, backend): the next cell of the pair saves start-up and compilation.

    Cells are measured one after another on one core, which no other sweep of the same user times on meanwhile.

    Args:
        share: bind this process to the core, too. A launcher's processes prepare their next cells there instead of
            on the cores of each other's measurements.
    """

    def __init__(self, *, share: bool = False) -> None:
        self._share = share
        self._workers: OrderedDict[tuple[str, ...], Worker] = OrderedDict()
        self._core: CoreLock | None = None
        self._affinity: set[int] = set()

    def measure(self, cell: Mapping[str, Any], limit: float, *, own_cache: bool = False) -> process_state.Answer:
        """The answer of a worker, or a failed one after `limit` seconds or when the worker dies.

        Args:
            cell: what is measured.
            limit: seconds.
            own_cache: use a new process that finds nothing compiled, and whose compiled code is thrown away.
        """
        place = cell["backend"]
        pair = (cell["method"]["name"], place["name"], *(str(place.get(name)) for name in COMPILATION_KEYS))
        core = self.claim_core()
        if own_cache:
            with tempfile.TemporaryDirectory(prefix="spinbench-compiled-") as folder:
                return self._measure_with(Worker(core, pair[2], Path(folder)), cell, limit, None)
        worker = self._workers.pop(pair, None)
        if worker is None:
            while len(self._workers) >= MAX_IDLE_WORKERS:
                self._workers.popitem(last=False)[1].close()
            worker = Worker(core, pair[2])
        return self._measure_with(worker, cell, limit, pair)

    def _measure_with(
        self, worker: Worker, cell: Mapping[str, object], limit: float, pair: tuple[str, ...] | None
    ) -> process_state.Answer:
        """The answer of a worker, which is kept for its pair unless anything went wrong."""
        since = time.perf_counter()
        try:
            answer = worker.measure(cell, limit)
        except WorkerDiedError as error:
            answer = process_state.failure_answer(str(error), worker.log() or None)
            answer["stages"] = {"run": time.perf_counter() - since}
        except BaseException:
            worker.close()
            raise
        if answer["status"] == "failed" or pair is None or worker.spoiled:
            worker.close()
        else:
            self._workers[pair] = worker
        return answer

    def claim_core(self) -> int:
        """The processor of this pool's core; the first call locks a core, and waits until one is free."""
        if self._core is None:
            self._core = CoreLock()
            if self._share and hasattr(os, "sched_setaffinity"):
                self._affinity = os.sched_getaffinity(0)
                os.sched_setaffinity(0, {self._core.number})
        return self._core.number

    def close(self) -> None:
        """End all workers and give the core back."""
        while self._workers:
            self._workers.popitem()[1].close()
        if self._core is not None:
            if self._affinity:
                os.sched_setaffinity(0, self._affinity)
            self._core.release()
            self._core = None


class Worker:
    """A process that measures the cells it is sent, one JSON line each way (`spinbench.measuring.worker`).

    Args:
        core, device: that it measures on.
        cache, python: a folder for compiled code, and the interpreter; None: those of all, and of this process.

    Attributes:
        spoiled: whether a cell left the process in another state than it found it in; replace it then.
    """

    spoiled = False

    def __init__(self, core: int, device: str, cache: Path | None = None, *, python: Path | None = None) -> None:
        self._since = time.perf_counter()
        self._ready = False
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        variables = worker_environment(device, cache)
        if python:  # a path of this process would hide what is installed there
            variables.pop("PYTHONPATH", None)
        self._process = subprocess.Popen(
            [str(python or sys.executable), "-P", "-m", "spinbench.measuring.worker", str(core)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=variables,
            start_new_session=True,  # so that killing the worker kills its children
        )

    def measure(self, cell: Mapping[str, object], limit: float) -> process_state.Answer:
        """The answer, with the seconds since the process was started as a stage of its first cell.

        Raises:
            WorkerDiedError: no answer within `limit` seconds, or the process ended; close it then.
        """
        assert self._process.stdin is not None
        started: dict[str, float] = {}
        try:
            if not self._ready:
                self._read_line(MAX_START_SECONDS)
                self._ready = True
                started["start"] = time.perf_counter() - self._since
            self._process.stdin.write(json.dumps(cell).encode() + b"\n")
            self._process.stdin.flush()
            line = self._read_line(limit)
        except TimeoutError as error:
            raise WorkerDiedError(f"there was no answer within {error} s, so its process was killed") from None
        except (BrokenPipeError, EOFError):
            raise WorkerDiedError(last_words(self._wait_for_exit())) from None
        try:
            answer: process_state.Answer = json.loads(line)
            stages = answer["stages"]
            self.spoiled = answer.pop("spoiled")
        except (ValueError, TypeError, KeyError, RecursionError):
            raise WorkerDiedError("what its process wrote was no answer, so it was killed") from None
        return {**answer, "stages": {**started, **stages}}

    def log(self) -> str:
        """The end of what the process wrote to its standard error and output."""
        self._log.seek(max(self._log.seek(0, os.SEEK_END) - MAX_LOG_BYTES, 0))
        return self._log.read().decode("utf-8", "replace").strip()

    def close(self) -> None:
        """Kill the process and its children, also those that it left behind."""
        self._kill_group()
        self._wait_for_exit()
        self._log.close()

    def _read_line(self, limit: float) -> bytes:
        assert self._process.stdout is not None
        deadline = time.monotonic() + limit
        received = bytearray()
        while not received.endswith(b"\n"):
            wait = deadline - time.monotonic()
            if wait <= 0:
                raise TimeoutError(f"{limit:g}")
            if not select.select([self._process.stdout], [], [], min(wait, 1.0))[0]:
                # Children of the dead worker may keep the pipe open.
                if self._process.poll() is not None:
                    raise EOFError
                continue
            block = os.read(self._process.stdout.fileno(), 1 << 16)
            if not block:
                raise EOFError
            received += block
            if len(received) > MAX_ANSWER_BYTES:
                break
        return bytes(received)

    def _wait_for_exit(self) -> int:
        """The exit status; a process that closed its pipe and lives on is killed."""
        try:
            status = self._process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self._kill_group()
            status = self._process.wait()
        # after the worker's exit: closing its input earlier would turn its own exit status into 0
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        return status

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


class CoreLock:
    """A processor core, locked against other sweeps of this user on this machine; waits until one is free.

    Attributes:
        number: the logical processor to bind to.
    """

    def __init__(self) -> None:
        from filelock import FileLock, Timeout

        folder = ensure_folder(cache_folder() / "cores")
        announced = False
        while True:
            # From the last core on: the first usually serves the machine's interrupts.
            for core, processor in reversed(environment.timing_cores().items()):
                lock = FileLock(folder / f"{socket.gethostname()}-{core}.lock")
                with contextlib.suppress(Timeout):
                    lock.acquire(timeout=0)
                    self.number, self._lock = processor, lock
                    return
            if not announced:
                print("spinbench: all cores are timing other sweeps; waiting for one", file=sys.stderr, flush=True)
                announced = True
            time.sleep(0.2)

    def release(self) -> None:
        """Let other sweeps have the core."""
        self._lock.release()


def worker_environment(device: str, cache: Path | None = None) -> dict[str, str]:
    """Environment variables of a worker: one thread everywhere, and the folders for compiled code.

    `cache` is a folder of the worker's own; None: compiled code is shared with other processes.
    """
    variables = dict(os.environ)
    variables |= dict.fromkeys(environment.THREAD_VARIABLES, "1")
    for backend in kernels.own_backends():
        profile = kernels.backend_profile(backend)
        profile.environment(variables, device)
        if profile.compiled:
            shared = profile.compiled_folder() if profile.compiled_folder else cache_folder() / "compiled" / backend
            variables.setdefault(profile.compiled, str(ensure_folder(shared)))
    variables.pop(process_state.OWN_CACHE_VARIABLE, None)
    if cache is not None:
        variables |= {name: str(cache / name) for name in kernels.cache_variables()}
        variables[process_state.OWN_CACHE_VARIABLE] = "1"
    return variables

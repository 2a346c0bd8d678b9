"""Compiled kernels on disk: where each lies, and a lock and a seal that keep wrong code out; and how long Numba has
compiled in this process, as its own events tell, since deadlines do not count that.

When anything is compiled or loaded, Numba looks for SciPy's BLAS, which takes a sixth of a second and no kernel needs.
The search is put off by replacing a function of Numba's while a module is imported. A Numba without a function of that
name loses nothing but the time, and `tests/backends/numba/test_private_names.py` says so.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numba
from filelock import FileLock, Timeout
from numba.core import config, event
from numba.core.compiler_lock import global_compiler_lock
from numba.np import linalg

from spinbench.backends.numba import machine_code
from spinbench.foundation import deadline

if TYPE_CHECKING:
    from numba.core.dispatcher import Dispatcher

# Compiles a function for argument types, as `Dispatcher.compile` does, and returns the machine code.
Compile = Callable[[Any], object]

Options = dict[str, Any]
"""Keywords of `numba.njit`."""
# Options of a function that only compiled code calls: Numba otherwise builds one wrapper for Python and one for C, a
# third of a kernel's compile time.
CALLEE: Options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

SOURCES = Path(__file__).parent
KERNELS = "kernels-"
# Longest wait in seconds for another process's compilation, ten times the slowest kernel's: a stopped process must not
# block others for ever.
LOCK_SECONDS = 300.0

_SEAL = "seal"
_LINALG: Any = linalg


class _Clock(event.Listener):
    """Adds up compilations; one that another asks for lies within it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._since = self._busy_since = 0.0

    def on_start(self, event: event.Event) -> None:
        deadline.compilers += 1
        self.start()

    def on_end(self, event: event.Event) -> None:
        deadline.compilers -= 1
        self.stop()

    def start(self) -> None:
        """From now on time counts."""
        if not self._depth:
            self._since, self._busy_since = time.perf_counter(), time.thread_time()
        self._depth += 1

    def stop(self) -> None:
        """It does no longer, unless it was started twice."""
        self._depth -= 1
        if not self._depth:
            took = time.perf_counter() - self._since
            self.seconds += took
            # Both clocks: a deadline is in seconds of wall time or of CPU time, and compilation is subtracted on the
            # same clock.
            deadline.add_compilation(took, time.thread_time() - self._busy_since)


_CLOCK = _Clock()


@contextmanager
def wait_as_compilation() -> Iterator[None]:
    """What is waited for inside is another process's compilation, and counts like one of this process."""
    _CLOCK.start()
    try:
        yield
    finally:
        _CLOCK.stop()


@cache
def count_compilation() -> None:
    """From now on."""
    event.register("numba:compile", _CLOCK)


def compile_seconds() -> float:
    """Since it is counted."""
    return _CLOCK.seconds


@cache
def look_for_blas_late() -> None:
    """Import Numba's array functions without it. Numba looks again where it compiles a product of matrices."""
    # A Numba version without this function has no such check and is left as it is.
    look = getattr(_LINALG, "ensure_blas", None)
    _LINALG.ensure_blas = lambda: None
    try:
        from numba.np import arraymath  # noqa: F401  # asks when it is imported
    finally:
        _LINALG.ensure_blas = look


class KernelLocator:
    """What Numba asks where it keeps a function's files (`NUMBA_CACHE_LOCATOR_CLASSES`).

    Each function has a folder of its own, which is named by the function's place below `SOURCES`, so that a second
    installation finds it, and by the digest of all sources, so that a change of what the function calls counts.
    """

    def __init__(self, function: FunctionType, file: str) -> None:
        place = Path(file).relative_to(SOURCES).with_suffix("")
        name = function.__qualname__.replace("<", "").replace(">", "")
        # Numba reads this attribute from its locators.
        self._py_file = file
        kernels = f"{KERNELS}{machine_code.sources_digest()}"
        self._folder = Path(config.CACHE_DIR) / kernels / place / name  # type: ignore[attr-defined]
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function: FunctionType, file: str) -> KernelLocator | None:
        """The place of a function below `SOURCES`, None of another one."""
        is_cacheable = bool(config.CACHE_DIR) and Path(file).is_relative_to(SOURCES)  # type: ignore[attr-defined]
        return cls(function, file) if is_cacheable else None

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        """The function's folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """What code is fresh for."""
        return machine_code.sources_digest()

    def get_disambiguator(self) -> str:
        """What tells functions of one name apart."""
        return str(self._line)


def njit(**options: Any) -> Callable[[Callable[..., object]], Dispatcher]:
    """Numba's, with a lock and a seal for functions that it keeps on disk.

    Two processes that compile one function for different arguments at once would choose the same file, so that the
    index of one names the code of the other; Numba raises on files that are cut, and where the disk is full. So one
    process at a time compiles a function, what it left is sealed, and what does not match its seal is compiled again.
    """

    def decorate(function: Callable[..., object]) -> Any:
        machine_code.use_cache_of_sources()
        dispatcher: Any = numba.njit(**options)(function)
        if options.get("cache"):
            dispatcher.compile = _guard_compilation(dispatcher)
        return dispatcher

    return decorate


def _guard_compilation(dispatcher: Any) -> Compile:
    compile_signature = dispatcher.compile

    def count_compilations() -> int:
        return sum(dispatcher.stats.cache_misses.values())

    def compile_guarded(signature: object) -> object:
        folder = Path(dispatcher.stats.cache_path)
        # Numba's lock is taken before the folder's: a thread with Numba's lock may request the folder's, and the other
        # order could deadlock.
        with global_compiler_lock:
            with suppress(OSError), _lock_folder(folder):
                if is_whole(folder) or _clear_folder(folder):
                    before = count_compilations()
                    entry = _compile_with_retry(compile_signature, signature)
                    if count_compilations() > before:
                        _seal(folder)
                    return entry
            # Another user's files can be neither read nor repaired: this process compiles into a folder of its own.
            with suppress(OSError):
                config.CACHE_DIR = _process_folder().name  # type: ignore[attr-defined]
                dispatcher.enable_caching()
            return _compile_with_retry(compile_signature, signature)

    return compile_guarded


def _compile_with_retry(compile_signature: Compile, signature: object) -> object:
    try:
        return compile_signature(signature)
    # Nothing could be written to disk. The compiled code is in memory, where this second call finds it.
    except OSError:
        return compile_signature(signature)


@cache
def _process_folder() -> TemporaryDirectory[str]:
    """Of this process alone, until it ends."""
    return TemporaryDirectory(prefix="spinbench-", ignore_cleanup_errors=True)


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """As far as the disk lets it; a lock is made each time since a forked process may not use its parent's."""
    lock = FileLock(folder / "lock", timeout=LOCK_SECONDS, thread_local=False)
    with suppress(OSError, Timeout):
        Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
        with wait_as_compilation():
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


def is_whole(folder: Path) -> bool:
    """Whether a function's files are those that were sealed, or there are none."""
    try:
        files = _files(folder)
        return not files or (folder / _SEAL).read_bytes() == _digest(files)
    except OSError:
        return False


def _seal(folder: Path) -> None:
    with suppress(OSError):
        (folder / _SEAL).write_bytes(_digest(_files(folder)))


def _clear_folder(folder: Path) -> bool:
    """Whether all of a function's files could be removed."""
    for file in [*_files(folder), folder / _SEAL]:
        with suppress(OSError):
            rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink()
    return not _files(folder)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.nb[ci]"))


def _digest(files: list[Path]) -> bytes:
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)} ".encode() + content)
    return digest.digest()

"""Where Numba keeps machine code of the kernels, one folder for each state of their sources."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from functools import cache
from importlib import metadata
from pathlib import Path

from spinbench.foundation.folders import cache_folder, numba_settings

CHECKS_VARIABLE = "SPINBENCH_SIMD_CHECKS"
# Whether kernels check their raw addresses; read once, since it decides which machine code is compiled.
CHECKED = os.environ.get(CHECKS_VARIABLE, "0") not in ("", "0")
# Newest folders of compiled kernels that are never deleted, besides the current one: enough to switch between a few
# checkouts without recompiling.
KEPT = 3
# Seconds since a process last started with a folder until it may be deleted: a running process may still load from it.
UNUSED_SECONDS = 86_400.0

# Modules of `methods` whose constants or functions are compiled into kernels. They enter the digest, since otherwise a
# changed constant would leave old machine code in use.
CONSTANTS = ("baselines/jumps.py", "blocks/tables.py", "buckets/draws.py", "relaxed/step_size.py")

_NUMBA = "numba-"
KERNEL_LOCATOR = "spinbench.backends.numba.kernel_cache.KernelLocator"
# Numba's own default locators.
NUMBA_LOCATORS = (
    *("UserProvidedCacheLocator", "InTreeCacheLocator", "UserWideCacheLocator"),
    *("IPythonCacheLocator", "ZipCacheLocator"),
)


@cache
def sources_digest() -> str:
    """Of all that kernels are compiled from, of Numba's version, and of whether addresses are checked: 16 digits."""
    digest = hashlib.sha256(CHECKS_VARIABLE.encode() if CHECKED else b"")
    with contextlib.suppress(metadata.PackageNotFoundError):
        digest.update(metadata.version("numba").encode() + b"\0")
    folder = Path(__file__).parent
    methods = folder.parents[1] / "methods"
    for source in [*sorted(folder.rglob("*.py")), *(methods / name for name in CONSTANTS)]:
        digest.update(source.relative_to(folder.parents[1]).as_posix().encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


@cache
def numba_folder() -> Path:
    """For machine code of the Numba kernels as they stand.

    Numba recompiles a function when the file that holds it changes, but not when a function that it calls, in another
    file, does: after an update old code would be measured. So each state of the kernels' sources has its own folder,
    and so have kernels that check their addresses (`simd`).
    """
    folder = cache_folder() / "compiled" / f"{_NUMBA}{sources_digest()}"
    # On a read-only disk every process compiles its kernels again.
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        _prune(folder.parent, keep=folder)
    return folder


def use_cache_of_sources() -> None:
    """Let Numba keep compiled functions in a folder that belongs to the kernels' sources, unless the user chose one.

    The kernels themselves are kept by what their sources say and not by where they lie, in the user's folder, too:
    every installation of the same sources finds them compiled. In the debug mode of `simd` they go nowhere else, and
    Numba checks the indices of arrays, too. `kernel_cache.njit` calls it for each kernel.
    """
    settings = numba_settings()
    if CHECKED or not settings.CACHE_DIR:
        settings.CACHE_DIR = str(numba_folder())
    locators = settings.CACHE_LOCATOR_CLASSES or ",".join(NUMBA_LOCATORS)
    if KERNEL_LOCATOR not in locators:
        settings.CACHE_LOCATOR_CLASSES = f"{KERNEL_LOCATOR},{locators}"
    if CHECKED:
        settings.BOUNDSCHECK = 1


def _prune(folder: Path, keep: Path) -> None:
    """Remove compiled kernels of other states of the sources, but for those last used, by other checkouts perhaps."""
    rivals = [(path.stat().st_mtime, path) for path in folder.glob(f"{_NUMBA}*") if path.name != keep.name]
    for used, path in sorted(rivals, reverse=True)[KEPT:]:
        if time.time() - used > UNUSED_SECONDS:
            # renamed first, so that no process finds a half-deleted folder
            doomed = path.with_name(f".{path.name}.{os.getpid()}")
            path.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)

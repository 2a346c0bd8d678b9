"""Where spinbench keeps what can be made again: exact answers, compiled code, downloads."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from spinbench.errors import SpinbenchError

VARIABLE = "SPINBENCH_CACHE_DIR"
OTHERS = stat.S_IRWXG | stat.S_IRWXO


def cache_folder() -> Path:
    """$SPINBENCH_CACHE_DIR, or the user's cache folder; a temporary one where that cannot be written.

    Compiled code is run and exact answers are believed, so nobody else may write there: in a folder of another user, or
    one that others can enter, whatever they may do below, it is a folder of one's own, mode 700; and the temporary one
    belongs to this process. Of the folders above, nobody else may put another one in its place.
    """
    chosen = os.environ.get(VARIABLE)
    if not chosen:
        import platformdirs

        chosen = platformdirs.user_cache_dir("spinbench", appauthor=False)
    return _below(Path(chosen))


def numba_settings() -> Any:
    """Numba's settings, which follow variables and no `.numba_config.yaml` of the working directory.

    A stranger's would name the folder that compiled code is read from, and run. Called before Numba is imported.
    """
    # Numba defines its settings at run time, unknown to type checkers, and reads the file at each compilation, too.
    settings: Any = import_without("numba.core.config", ".numba_config.yaml")
    if settings._config_fname != os.devnull:
        settings._config_fname = os.devnull
        settings.reload_config()
    return settings


def import_without(module: str, file: str) -> ModuleType:
    """A module that reads a file of the working directory, which may be a stranger's, when it is first imported."""
    elsewhere = contextlib.chdir(Path(__file__).parent) if os.path.lexists(file) else contextlib.nullcontext()
    with elsewhere:
        return import_module(module)


def ensure_folder(part: Path) -> Path:
    """A folder below the cache's, which is made if there is none.

    Raises:
        SpinbenchError: something else is in its place.
    """
    try:
        part.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpinbenchError(
            f"the cache needs the folder {part}, which cannot be made ({error.strerror}): move away what stands there, "
            f"or choose another cache with {VARIABLE}"
        ) from error
    return part


@cache
def _below(chosen: Path) -> Path:
    return next(filter(_is_ours, (chosen, chosen / f"private-{_user()}")), None) or _temporary()


def _is_ours(folder: Path) -> bool:
    """Whether a folder, which is made if there is none, can be written and entered by this user and by nobody else.

    A link to one is as good where nobody else can set it anew.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        owners, mode = {folder.lstat().st_uid, folder.stat().st_uid}, folder.stat().st_mode
        with tempfile.TemporaryFile(dir=folder):
            private = owners == {_user()} and not mode & OTHERS
            return os.name == "nt" or (private and all(map(_is_stable, folder.resolve().parents)))
    except OSError:
        return False


def _is_stable(parent: Path) -> bool:
    """Whether nobody but this user and root can put another folder in the place of one in this parent.

    Members of a user's own group may, as umask 002 lets them: on systems that have it, there are no others.
    """
    status = parent.stat()
    loose = stat.S_IWOTH if status.st_gid in (_user(), 0) else stat.S_IWOTH | stat.S_IWGRP
    return status.st_uid in (_user(), 0) and (not status.st_mode & loose or bool(status.st_mode & stat.S_ISVTX))


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


@cache
def _temporary() -> Path:
    """For this process and, through the environment, those that it starts."""
    folder = Path(tempfile.mkdtemp(prefix="spinbench-cache-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[VARIABLE] = str(folder)
    return folder

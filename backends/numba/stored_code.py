"""Compiled kernels on disk that are believed only if they are whole and belong to what was asked for."""

from __future__ import annotations

import hashlib
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core import caching

Files = Any
"""Numba's index and data files of one function."""


_PLAIN: Any = caching.IndexDataCacheFile
_LOCATORS: Any = caching.CompileResultCacheImpl._locator_classes


class StoredCode(_PLAIN):  # type: ignore[misc]  # Numba has no types
    """Numba's files of one function, each entry with its key and a checksum.

    Numba itself raises on an index or an entry that is empty or cut, again at every start, and on a full disk. It also
    gives two processes that compile one function for different arguments at one time the same file, so that the index
    of the one may end up with the code of the other. Here either counts as not compiled yet.
    """

    def load(self, key: Any) -> Any:
        """The entry of this key, or None."""
        sealed = super().load(key)
        if sealed is None or _seal(sealed[:-_SIZE]) != sealed[-_SIZE:]:
            return None
        found, code = pickle.loads(sealed[:-_SIZE])
        return code if found == key else None

    def save(self, key: Any, data: Any) -> None:
        """Keep an entry; does nothing where it cannot be written."""
        with suppress(OSError):
            super().save(key, (key, data))

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except Exception:  # unpickling what is damaged may raise anything
            return {}

    def _load_data(self, name: str) -> bytes:
        return Path(self._data_path(name)).read_bytes()

    def _save_data(self, name: str, data: Any) -> None:
        content: bytes = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(content + _seal(content))


_SIZE = hashlib.sha256().digest_size


def _seal(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def keep_below(*folders: Path) -> None:
    """Let Numba's files in these folders be such; those elsewhere, of a user's own functions, stay as they are."""

    def files(cache_path: str, filename_base: str, source_stamp: Any) -> Files:
        if not any(Path(cache_path).is_relative_to(folder) for folder in folders):
            return _PLAIN(cache_path, filename_base, source_stamp)
        # a name of their own: kernels that were imported before this was called have plain files beside them
        return StoredCode(cache_path, f"{filename_base}.sealed", source_stamp)

    module: Any = caching
    module.IndexDataCacheFile = files


def keep_by_place(sources: Path, folder: Path) -> None:
    """Let Numba keep functions of files below `sources` in `folder`, by the file's place below `sources`.

    Numba itself goes by the absolute path, so that a second installation compiles all anew. `folder` is to belong to
    the contents of `sources`, which are not looked at again.
    """
    module: Any = caching

    class ByPlace(module._CacheLocator):  # type: ignore[misc]  # Numba has no types
        """What Numba asks where a function's files are; `_py_file` is a name that it reads."""

        def __init__(self, function: Any, file: str) -> None:
            self._py_file = file
            self._line = function.__code__.co_firstlineno

        def get_cache_path(self) -> str:
            return str(folder / Path(self._py_file).relative_to(sources).with_suffix(""))

        def get_source_stamp(self) -> str:
            return folder.name

        def get_disambiguator(self) -> str:
            return str(self._line)

        @classmethod
        def from_function(cls, function: Any, file: str) -> ByPlace | None:
            if not Path(file).is_relative_to(sources):
                return None
            found = cls(function, file)
            try:
                found.ensure_cache_path()
            except OSError:  # a full or foreign disk: Numba's own ways are next
                return None
            return found

    module.CompileResultCacheImpl._locator_classes = [ByPlace, *_LOCATORS]

"""Names that a library still uses although their own library has dropped them, lent for the time of a call."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any


@contextlib.contextmanager
def lent(module: ModuleType, name: str, value: Any) -> Iterator[None]:
    """`module.name` is `value` inside, unless it exists."""
    if hasattr(module, name):
        yield
        return
    setattr(module, name, value)
    try:
        yield
    finally:
        delattr(module, name)

"""Functions that compiled code alone calls, for tests."""

from __future__ import annotations

from functools import cache
from typing import Any

import numba as nb


@cache
def called(part: Any) -> Any:
    """Such a function for Python to call; each is compiled once, however often it is asked for."""
    return nb.njit(lambda *arguments: part(*arguments))

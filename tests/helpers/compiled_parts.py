"""Functions that compiled code alone calls, for tests."""

from __future__ import annotations

from typing import Any

import numba as nb


def called(part: Any) -> Any:
    """Such a function for Python to call."""
    return nb.njit(lambda *arguments: part(*arguments))

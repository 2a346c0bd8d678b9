"""Threads of the linear algebra libraries that a process has loaded."""

from __future__ import annotations

import contextlib
import sys
from functools import lru_cache
from typing import Any


def one_blas_thread() -> contextlib.AbstractContextManager[Any]:
    """Inside, BLAS works in one thread: a second one slows small products down."""
    context: contextlib.AbstractContextManager[Any] = _controller(len(sys.modules)).limit(limits=1, user_api="blas")
    return context


@lru_cache(1)
def _controller(modules: int) -> Any:
    """Of the libraries that so many modules have loaded: to look for them takes longer than a small model."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()

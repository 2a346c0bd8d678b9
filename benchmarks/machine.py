"""Where benchmarks run: the cores, and what they are."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits

from spinbench.measuring import environment


def pin(cores: int) -> None:
    """Let this process and its threads run on so many of its cores, and ask libraries for as many threads.

    Libraries read the variables and count cores when they are imported; BLAS, which a plugin of pytest may have
    imported, is told apart.
    """
    allowed = sorted(os.sched_getaffinity(0))[-cores:]  # the first core serves interrupts
    os.sched_setaffinity(0, allowed)
    for name in environment.THREAD_VARIABLES:
        os.environ.setdefault(name, str(len(allowed)))
    threadpool_limits(len(allowed), "blas")


def machine_description() -> str:
    """The processor and the versions, a line."""
    state = environment.describe()
    versions = ", ".join(f"{name} {version}" for name, version in state["versions"].items())
    return f"{state['cpu']}, {state['cores']} cores; Python {state['python']}; {versions}"


def write_figures(
    path: Path, title: str, command: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = ""
) -> None:
    """A table for `benchmarks/page.py`, with this machine, the versions and today's date."""
    state = environment.describe()
    versions = [f"{name} {version}" for name, version in state["versions"].items()]
    figures = {
        "title": title,
        "command": command,
        "machine": f"{state['cores']} cores of {state['cpu']}",
        "versions": ", ".join([f"Python {state['python']}", *versions]),
        "date": f"{datetime.date.today():%-d %B %Y}",
        "note": note,
        "columns": columns,
        "rows": rows,
    }
    path.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

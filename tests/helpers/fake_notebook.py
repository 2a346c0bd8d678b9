"""What a notebook's kernel does for those who print, as far as one output for each cell takes it."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class FakeNotebook:
    """A shell in IPython's place, which keeps what is published.

    Attributes:
        execution_count: of the cell that runs now.
        kernel: None in a terminal.
        published: what came, oldest first: plain text, whether it is in place of another, and its output's name.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, kernel: bool = True) -> None:
        self.execution_count = 1
        self.kernel = SimpleNamespace() if kernel else None
        self.published: list[SimpleNamespace] = []
        self.display_pub = SimpleNamespace(publish=self._publish)
        module: Any = ModuleType("IPython")
        module.get_ipython, module.version_info = lambda: self, (9, 0)
        monkeypatch.setitem(sys.modules, "IPython", module)
        monkeypatch.setattr("spinbench.inference.notebook.progress._latest", None)

    def _publish(self, data: Any, metadata: Any, *, transient: Any, update: bool) -> None:
        name, text, page = transient["display_id"], data["text/plain"], data["text/html"]
        self.published.append(SimpleNamespace(text=text, html=page, update=update, name=name))

    @property
    def outputs(self) -> dict[str, str]:
        """What stands below the cells in the end, by name; an update of what is not there counts for nothing."""
        found: dict[str, str] = {}
        for one in self.published:
            if not one.update or one.name in found:
                found[one.name] = one.text
        return found

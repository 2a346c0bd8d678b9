"""The page of methods and backends: who runs where, and each method's settings with defaults and meanings."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Mapping
from typing import Any

from spinbench.api import Method
from spinbench.inference import kernels, registry

HEAD = """# Methods and backends

`spinbench list` prints this table for the plugins that are installed on your machine. *native*: a kernel of its own;
*generic*: the method's program on the backend's arrays; *extra*: the same, with a package that `pip install
'spinbench[…]'` brings; —: the pair does not exist.

"""
_ATTRIBUTES = re.compile(r"^    ([\w, ]+): ((?:.+\n?(?:     .*\n?)*))", re.MULTILINE)
SETTINGS = """
Settings are keywords of [`spinbench.run`](python.md#spinbench.run) and values of a sweep, `method.NAME=VALUE`.
"""


def text() -> str:
    """Markdown."""
    shipped = [name for name in registry.names("methods") if _class(name).__module__.startswith("spinbench.")]
    return HEAD + _coverage(shipped) + SETTINGS + "".join(_module(names) for names in _by_module(shipped).values())


def _class(name: str) -> type[Method]:
    return registry.method_class(name)


def _coverage(names: list[str]) -> str:
    backends = [
        name for name in kernels.own_backends() if registry.backend_class(name).__module__.startswith("spinbench.")
    ]
    lines = [f"| method | {' | '.join(backends)} | what it does |", "|---" * (len(backends) + 2) + "|"]
    for name in names:
        cls = _class(name)
        tiers = [registry.support(name, backend) for backend in backends]
        shown = {"native": "native", "generic": "generic"}
        if cls.requires:  # whether it is installed here or not
            shown |= {"generic": "extra", "unavailable": "extra"}
        cells = " | ".join(shown.get(how.tier, "—") for how in tiers)
        anchor = _by_module(names)[cls.__module__][0]
        lines.append(f"| [`{name}`](#{anchor}) | {cells} | {cls.summary} |")
    return "\n".join(lines) + "\n"


def _by_module(names: list[str]) -> dict[str, list[str]]:
    """Names of the methods that a module defines."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(_class(name).__module__, []).append(name)
    return found


def _module(names: list[str]) -> str:
    cls = _class(names[0])
    title = ", ".join(names)
    return f"\n## {title} {{ #{names[0]} }}\n\n{prose(sys.modules[cls.__module__])}\n\n{_settings(names)}"


def prose(documented: Any) -> str:
    """A docstring; its mathematics stands as it is written, in a block where it is indented."""
    return "\n".join(map(_line, (inspect.getdoc(documented) or "").splitlines()))


def _line(line: str) -> str:
    return line if line.startswith("    ") else line.replace("*", r"\*").replace("<", "&lt;").replace("_", r"\_")


def _settings(names: list[str]) -> str:
    """A table of the dataclass's fields; classes of one module differ in few, which are named once."""
    rows: dict[str, str] = {}
    for name in names:
        meanings = attribute_meanings(_class(name))
        for field in dataclasses.fields(_class(name)):  # type: ignore[arg-type]
            meaning = " ".join(meanings.get(field.name, "").split()).replace("|", r"\|")
            default = repr(field.default) if field.default is not dataclasses.MISSING else "—"
            rows.setdefault(field.name, f"| `{field.name}` | `{default}` | {meaning} |")
    if not rows:
        return "No settings.\n"
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows.values()]) + "\n"


def attribute_meanings(cls: type) -> Mapping[str, str]:
    """What the docstrings of a class and its bases say of attributes."""
    meanings: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if "__doc__" not in vars(base) or not base.__doc__:
            continue
        for names, meaning in re.findall(
            r"^    ([\w, ]+): ((?:.+\n?(?:     .*\n?)*))", _section(base.__doc__), re.MULTILINE
        ):
            meanings |= dict.fromkeys(names.split(", "), meaning)
    return meanings


def _section(docstring: str) -> str:
    """The lines of "Attributes:"; griffe reads no "a, b: meaning"."""
    lines = inspect.cleandoc(docstring).partition("Attributes:\n")[2]
    return re.split(r"^\S", lines, maxsplit=1, flags=re.MULTILINE)[0]

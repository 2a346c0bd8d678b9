"""The page of configurations: every group with its options, their values and what these mean."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml
from methods_page import prose

from spinbench.conf import searchpath
from spinbench.foundation import plugins
from spinbench.foundation.parameters import hints_of
from spinbench.inference import registry
from spinbench.models import catalogue, families

CONF = Path(__file__).resolve().parents[2] / "conf"
HEAD = """# Configuration

`spinbench sweep` composes a cell from one option of each group, `GROUP=NAME`, and single values, `NAME=VALUE`. With
`-m`, commas make all combinations. `spinbench sweep --help` prints the groups and values that your installation has,
those of plugins among them; `spinbench sweep --cfg job …` prints what was composed.

## The cell and the sweep { #config }

"""
GROUPS = {
    "model": "What is measured on: `model=NAME model.PARAMETER=VALUE`.",
    "method": "What computes: `method=NAME method.SETTING=VALUE`; [Methods and backends](methods.md) has more of that.",
    "backend": "Where it is computed.",
    "budget": "How long; a budget holds either seconds or samples.",
    "launcher": "What runs cells side by side; without one they run one after another.",
    "size": "How large an experiment is.",
    "experiment": "Whole sweeps; all else can be overridden behind them.",
    "axes": "What asv's history tracks; chosen by `family`, not on the command line.",
}
BACKEND_VALUES = """
`device`: cpu or gpu. `precision`: float64 or float32. `tier`: native (a kernel or nothing) or generic (the method's
program or nothing); null: whichever runs. `kernel`: the distribution whose kernel is asked; null: the method's own,
then the backend's.
"""
FILE_VALUES = """
### model=file { #model-file }

Your own: `model.path`, with `model.evidence`, a file, and `model.beta`, which multiplies all energies.

### Shipped models { #model-shipped }

"""


def text() -> str:
    """Markdown."""
    found = sorted(path.name for path in CONF.iterdir() if path.is_dir() and any(path.rglob("*.yaml")))
    groups = [*(name for name in GROUPS if name in found), *(name for name in found if name not in GROUPS)]
    return (
        HEAD
        + _block((CONF / "config.yaml").read_text(encoding="utf-8").partition("\nhydra:")[0])
        + "".join(_head(group) + options() + _presets(group) for group, options in REGISTERED.items())
        + "".join(map(_group, groups))
    )


def _methods() -> str:
    rows = [
        f"| `method={name}` | {registry.method_class(name).summary} | {_values('method', name)} |"
        for name in registry.names("methods")
        if _is_ours("methods", name)
    ]
    return _table("option", "", "settings", rows=rows)


def _backends() -> str:
    rows = [f"| `backend={name}` | {_values('backend', name)} |" for name in registry.names("backends")]
    return _table("option", "values", rows=rows) + BACKEND_VALUES


def _models() -> str:
    """Families, module by module, with what is said of their parameters, and the shipped models."""
    modules: dict[str, list[str]] = {}
    for name in families.names():
        if _is_ours("models", name):
            modules.setdefault(families.load(name).__module__, []).append(name)
    own = "".join(
        f"\n{prose(sys.modules[module])}\n" + "".join(map(_family, names)) for module, names in modules.items()
    )
    shipped = [f"| `model={name}` | {catalogue.summary(name)} |" for name in catalogue.names()]
    return own + FILE_VALUES + _table("option", "", rows=shipped)


def _family(name: str) -> str:
    """What its function says, and its parameters, of texts those that are allowed."""
    function = families.load(name)
    hints = hints_of(function)
    rows = [
        f"| `{key}` | `{'—' if value is families.REQUIRED else value}` | {_choices(hints[key])} |"
        for key, value in families.parameter_defaults(name).items()
    ]
    head = f"\n### model={name} {{ #model-{name} }}\n\n{prose(function)}\n\n"
    return head + _table("parameter", "default", "of", rows=rows)


def _choices(hint: Any) -> str:
    return ", ".join(get_args(hint)) if get_origin(hint) is Literal else ""


def _presets(group: str) -> str:
    """As presets.yaml has them."""
    if group not in searchpath.presets():
        return ""
    lines = (CONF / "presets.yaml").read_text(encoding="utf-8").splitlines()
    first = lines.index(f"{group}:") + 1
    last = next((k for k in range(first, len(lines)) if not lines[k].startswith(" ")), len(lines))
    return (
        f"\nPresets, each the defaults of what it is a variant `of` but for these values, `{group}=NAME`:\n\n"
        + _block("\n".join(line[2:] for line in lines[first:last]))
    )


def _values(group: str, name: str) -> str:
    """All but the name, on a line."""
    values = searchpath.option(group, name).items()
    return ", ".join(f"`{key}: {yaml.safe_dump(value).split(chr(10))[0]}`" for key, value in values if key != "name")


def _is_ours(kind: str, name: str) -> bool:
    return plugins.distribution(plugins.entry_points(kind)[name][0]) == plugins.OWN


def _table(*columns: str, rows: list[str]) -> str:
    return "\n".join([f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *rows]) + "\n"


def _head(group: str) -> str:
    return f"\n## {group}\n\n{GROUPS.get(group, '')}\n\n"


def _group(group: str) -> str:
    """Options that hold a name alone make a table; the others are shown as they are."""
    table, blocks = [], []
    for path in sorted((CONF / group).rglob("*.yaml"), key=lambda path: (len(path.parts), path)):
        name = path.relative_to(CONF / group).with_suffix("").as_posix()
        comment, body = _split(path.read_text(encoding="utf-8"))
        if list(yaml.safe_load(body)) == ["name"]:
            table.append(f"| `{group}={name}` | {comment.replace('|', chr(92) + '|')} |")
        else:
            blocks.append(f"### {group}={name} {{ #{group}-{name.replace('/', '-')} }}\n\n{comment}\n\n{_block(body)}")
    return (
        _head(group) + "\n".join(blocks) + ("\n\n| option | |\n|---|---|\n" + "\n".join(table) + "\n" if table else "")
    )


def _split(source: str) -> tuple[str, str]:
    """The comment at the head as one paragraph, and the rest; directives for Hydra stay with the rest."""
    lines = source.splitlines()
    directives = [line for line in lines[:1] if line.startswith("# @package")]
    rest = lines[len(directives) :]
    count = next((i for i, line in enumerate(rest) if not line.startswith("#")), len(rest))
    plain = count and all(not line.startswith("#  ") and line.strip() != "#" for line in rest[:count])
    if not plain:  # a head with its own layout, or none
        return "", source
    comment = " ".join(line.removeprefix("#").strip() for line in rest[:count])
    return comment, "\n".join([*directives, *rest[count:]])


def _block(source: str) -> str:
    return f"```yaml\n{source.strip()}\n```\n"


REGISTERED = {"model": _models, "method": _methods, "backend": _backends}

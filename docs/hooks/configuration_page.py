"""The page of configurations: every group of conf/ with its options, their values and comments."""

from __future__ import annotations

from pathlib import Path

import yaml

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


def text() -> str:
    """Markdown."""
    found = sorted(path.name for path in CONF.iterdir() if path.is_dir() and any(path.rglob("*.yaml")))
    groups = [*(name for name in GROUPS if name in found), *(name for name in found if name not in GROUPS)]
    return (
        HEAD
        + _block((CONF / "config.yaml").read_text(encoding="utf-8").partition("\nhydra:")[0])
        + "".join(map(_group, groups))
    )


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
    head = f"\n## {group}\n\n{GROUPS.get(group, '')}\n\n"
    return head + "\n".join(blocks) + ("\n\n| option | |\n|---|---|\n" + "\n".join(table) + "\n" if table else "")


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

"""The page of benchmarks, from the tables in benchmarks/figures.

    python benchmarks/page.py > docs/benchmarks.md

Each table has its title, command, machine, versions and date, as `machine.write_figures` puts them down.
"""

from __future__ import annotations

import json
from pathlib import Path

FIGURES = Path(__file__).with_name("figures")
# In the order in which they appear on the page.
TABLES = ("peers", "speed_table", "kernels", "scaling", "devices", "devices_arrays")

HEAD = """\
# Benchmarks

Speed of kernels and of whole calls, of spinbench and of [other libraries](reference/peers.md). `python
benchmarks/page.py > docs/benchmarks.md` writes this page from the tables in `benchmarks/figures`; the command above
each table measures it anew. [How spinbench measures](measuring.md) says what is counted.
"""

SECTION = """
## {title}

```sh
{command}
```

{machine}. {versions}. {date}.{note}

{table}
"""


def section(name: str) -> str:
    """The table of that name, and how it was measured."""
    figures = json.loads((FIGURES / f"{name}.json").read_text(encoding="utf-8"))
    lines = [figures["columns"], ["---"] * len(figures["columns"]), *figures["rows"]]
    figures["table"] = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    figures["note"] = f"\n\n{figures['note']}".rstrip()
    return SECTION.format(**figures)


if __name__ == "__main__":
    print(HEAD + "".join(map(section, TABLES)), end="")

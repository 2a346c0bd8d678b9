"""The page of what commands print with `--json`, from its types."""

from __future__ import annotations

import records_page

from spinbench.reporting.commands.json_document import VERSION, Document

HEAD = f"""# JSON of answers

With `--json`, `run`, `exact`, `advise`, `bracket`, `mixing`, `audit` and `gate` print one line of JSON, and nothing
else:

```sh
spinbench run boltzmann/neural15 --budget 1000 --json > answer.json
```

The exit status is the same as without it, and stands in the document; after an error of the user's (exit status 2)
there is a sentence on standard error and no document. Infinity, NaN and what there is none of are null. Commands may
add names; one that changes its meaning or goes raises `version`, which is {VERSION}. `[]` stands for each entry of
a list, NAME for the name of a setting, a diagnostic, a quantity or a column. In Python, `spinbench.run` and its likes
return objects whose attributes have these names.

| name | type | meaning |
|---|---|---|
"""


def text() -> str:
    """Markdown."""
    rows = records_page.columns(Document, in_lists=True)
    return HEAD + "".join(f"| `{name}` | {kind} | {meaning} |\n" for name, kind, meaning in rows)

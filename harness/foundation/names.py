"""Names that do not exist, and the closest ones that do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from spinbench.errors import UnknownNameError


def unknown_name(
    kind: str, name: str, allowed: Iterable[str], removed: Mapping[str, str] | None = None
) -> UnknownNameError:
    """The error for a name that does not exist, with the closest ones that do.

    Args:
        kind: says what it should name.
        name: that was given.
        allowed: those that there are.
        removed: those that there were, and what to do instead.
    """
    allowed, removed = list(allowed), removed or {}
    if name in removed:
        return UnknownNameError(f"no {kind} is named {name!r} any more; {removed[name]}")
    close = difflib.get_close_matches(name, allowed, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(allowed) or 'none'}"
    return UnknownNameError(f"no {kind} is named {name!r}; {hint}")

"""Members of `Method` as version 0.1 had them, which plugins may still have: they are read as those of today."""

from __future__ import annotations

import warnings
from typing import Any

KINDS = {"anytime": "direct", "stochastic": "iteration", "started": "draws"}
"""Which kind False stands for, of several the first."""
CONFORMANCE = {"burnt_in": "burn_in_first", "exact_on_trees": "exact_on_trees"}
NEW = {
    **dict.fromkeys(KINDS, "kind"),
    **dict.fromkeys(CONFORMANCE, "conformance"),
    "takes": "model_form",
    "needs": "requires",
}


def translate_members(method: Any) -> None:
    """Set the members of today by those of version 0.1 that a subclass of `Method` defines, with a warning."""
    old = {name: value for name, value in vars(method).items() if name in NEW}
    for name, value in old.items():
        warnings.warn(
            f"{method.__name__}.{name} is a member of spinbench 0.1; {NEW[name]} is in its place, and 0.3 ends it",
            DeprecationWarning,
            stacklevel=4,
        )
        if name in CONFORMANCE:
            method.conformance = method.conformance._replace(**{CONFORMANCE[name]: value})
    if "takes" in old:
        method.model_form = old["takes"]
    if "needs" in old:
        method.requires = (*sorted(old["needs"] - {"arrays"}), *method.requires)
    if kinds := [kind for name, kind in KINDS.items() if not old.get(name, True)]:
        method.kind = kinds[0]

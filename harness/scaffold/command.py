"""`spinbench init`: the package of a plugin, or a history."""

from __future__ import annotations

from argparse import Namespace

from spinbench.scaffold import history, package


def run(arguments: Namespace) -> int:
    """Write it, and print what is there now; 0, the exit status."""
    kinds = [kind for kind in package.GROUPS if getattr(arguments, kind) is not None]
    if kinds:
        lines = package.init(arguments.folder, kinds[0], getattr(arguments, kinds[0]))
    else:
        lines = history.init(arguments.folder)
    print("\n".join(lines))
    return 0

"""`spinbench sweep`: at the commit that is checked out, or at several."""

from __future__ import annotations

from collections.abc import Sequence

from spinbench.sweeping.arguments import Arguments


def main(argv: Sequence[str]) -> int:
    """Run a sweep; returns and raises as `sweep.sweep` and `over_commits.sweep` do."""
    if Arguments.parse(argv).commits is None:
        from spinbench.sweeping.sweep import sweep
    else:
        from spinbench.sweeping.over_commits import sweep
    return sweep(argv)

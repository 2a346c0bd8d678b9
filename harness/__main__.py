"""`python -m spinbench`."""

from __future__ import annotations

from spinbench.cli import main

raise SystemExit(main())

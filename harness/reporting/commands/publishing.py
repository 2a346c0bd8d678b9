"""`spinbench publish`: the site of the history."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from spinbench.history import command, publish
from spinbench.reporting.progress_display import short_path


def run(arguments: Namespace) -> int:
    """Write the site, and print where it is; 0, the exit status."""
    index = publish.publish(command.history_root(), offline=arguments.offline)
    server = f"{Path(sys.executable).name} -m http.server -d {short_path(index.parent)}"
    print(f"site: {short_path(index)}; see it with: {server}")
    return 0

"""`python -m spinbench`, and the script `spinbench`."""

from __future__ import annotations

import os
import signal
from types import FrameType


def main() -> int:
    """The exit status of a command; interrupts end it also while it is imported and while Python shuts down."""
    signal.signal(signal.SIGINT, _exit)
    # Python that is started from here, by whatever library, imports nothing from the folder that it is started in.
    os.environ["PYTHONSAFEPATH"] = "1"
    from spinbench.cli import main as run_command

    status = run_command()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own handler prints a traceback
    return status


def _exit(number: int, frame: FrameType | None) -> None:
    """Ends the process at once: some imports turn a KeyboardInterrupt into an error of their own."""
    os.write(2, b"spinbench: interrupted\n")
    os._exit(128 + number)


if __name__ == "__main__":
    raise SystemExit(main())

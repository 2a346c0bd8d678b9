"""`python -m spinbench.measuring.worker CORE`: measures cells, one JSON line in and one out each, until its input ends.

Nothing but the standard library is imported before the process is bound to its core.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import threading
from queue import SimpleQueue
from typing import IO


def main(core: int) -> None:
    """Serve `spinbench.measuring.isolation.Worker`."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    from spinbench.foundation.child import die_with_parent, yield_memory_first

    yield_memory_first()
    die_with_parent()
    requests, answers = _private_pipes()
    faulthandler.enable()
    inbox: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_queue_requests, args=(requests, inbox), daemon=True).start()

    from spinbench.measuring.in_process import measure_here
    from spinbench.measuring.process_state import current_process_state

    answers.write(b"ready\n")
    answers.flush()
    served, state = 0, current_process_state()
    while True:
        answer = measure_here(json.loads(inbox.get()), warm=served > 0)
        served += answer["status"] == "ok"
        spoiled = current_process_state() != state
        answers.write(json.dumps({**answer, "spoiled": spoiled}).encode() + b"\n")
        answers.flush()


def _private_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Take standard input and output away from the measured code, whose prints would garble the answers."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return requests, answers


def _queue_requests(requests: IO[bytes], inbox: SimpleQueue[bytes]) -> None:
    """Pass requests on; at their end, when the sweep closed the pipe or died, end the process at once."""
    for line in requests:
        inbox.put(line)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""A job of a sweep, which is one cell: in the sweep's own process, or in one that a launcher started for it."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.singleton import Singleton
from omegaconf import DictConfig, OmegaConf

from spinbench.errors import SpinbenchError
from spinbench.foundation.atomic import alive
from spinbench.measuring import environment, isolation, measure, provenance, record_parts, record_types, records
from spinbench.measuring.stages import Stages
from spinbench.reporting import progress_display
from spinbench.sweeping import composition as _resolvers  # noqa: F401 - a launcher's process needs those of configurations
from spinbench.sweeping import launchers

# Seconds between a launcher process's checks whether the sweep is alive.
PARENT_SECONDS = 0.5


class AbortError(BaseException):
    """Ends a sweep from within a job, with the sentence to say; Hydra would go on after an Exception."""

    def __reduce__(self) -> tuple[object, ...]:
        """Alone: Hydra 1.4 hangs what the job returned on an error, and the error on that, which pickles for ever."""
        return type(self), self.args


@dataclass
class State:
    """Of a process that runs jobs.

    Attributes:
        pool: of workers.
        display: None in a launcher's processes, of which there are several.
        varied: keys of the sweep with more than one value.
        idle_since: when the process became free for its next cell; None: at an unknown time.
        writing: seconds that the last record took to be written.
        broken: why this process writes no more records.
        interrupted: set by an interrupt, also by one that raised where Python or a library drops what is raised.
    """

    pool: isolation.WorkerPool = field(default_factory=isolation.WorkerPool)
    display: progress_display.Display | None = None
    varied: tuple[str, ...] = ()
    idle_since: float | None = None
    writing: float = 0.0
    broken: SpinbenchError | None = None
    interrupted: threading.Event = field(default_factory=threading.Event)


_state: State | None = None


def enter(state: State) -> None:
    """Set the state of this process, instead of that of a launcher's process, which its first job makes."""
    global _state
    _state = state


def watch_interrupts(interrupted: threading.Event) -> None:
    """Let no cell begin in this process once an interrupt has set this."""
    if _state is not None:
        _state.interrupted = interrupted


def leave() -> None:
    """End the workers of this process, and give its core back."""
    global _state
    if _state is not None:
        _state.pool.close()
        _state = None


def run(config: DictConfig) -> str:
    """One cell of a sweep: measure it unless it has a good record, and write the record.

    Returns:
        The key of its record.

    Raises:
        AbortError: the record cannot be written.
        SpinbenchError: the same, where the launcher cannot be stopped.
    """
    state = _state or _of_launcher()
    if state.broken is not None:
        raise state.broken
    if state.interrupted.is_set():
        raise KeyboardInterrupt
    stages = Stages()
    if state.idle_since is not None:
        stages.add("compose", time.perf_counter() - state.idle_since)
        stages.add("record", state.writing)
    with stages("lookup"):
        whole: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
        cell = measure.extract_cell(whole)
        folder, git = Path(whole["sweep_dir"]), whole["git"]
        plugins = provenance.foreign_plugins(cell)
        key = records.cell_key(cell, git, plugins)
        is_measured = _has_good_record(folder, key)
    name = ""
    if state.display is not None:
        varied = {key: OmegaConf.select(config, key) for key in state.varied}
        name = progress_display.cell_name(record_parts.Axes(**records.axis_labels(cell)), varied)
        state.display.start_cell(name)
    record = None
    state.writing = 0.0
    if not is_measured:
        record = measure.measure_cell(whole, git=git, plugins=plugins, pool=state.pool, before=stages.seconds)
        # A launcher's process may have another working folder.
        if state.display is not None:
            now = environment.code_state_since(git)
            record |= {"git": now, "key": records.cell_key(cell, now, plugins)}
        _write(state, folder, record)
    if state.display is not None:
        state.display.finish_cell(name, None if record is None else record_types.parse_record(record))
    state.idle_since = time.perf_counter()
    return key if record is None else str(record["key"])


def _write(state: State, folder: Path, record: records.Content) -> None:
    since = time.perf_counter()
    try:
        records.write_record(folder, record)
    except records.RecordError as error:
        state.broken = error
        hydra: Any = HydraConfig.instance().cfg
        if launchers.kind(hydra) in ("Basic", "Joblib"):  # others run what they have been given to its end
            raise AbortError(str(error)) from error
        raise
    state.writing = time.perf_counter() - since


def _of_launcher() -> State:
    """The state of a process that a launcher started: bound to a core of its own, ending with whoever started it."""
    global _state
    _state = State(isolation.WorkerPool(share=True))
    sweep = int(os.environ.get(launchers.PROCESS_VARIABLE, os.getpid()))
    # With a single job, joblib uses the sweep's own process.
    if sweep != os.getpid():
        threading.Thread(target=_end_with, args=(sweep,), daemon=True).start()
        # every job brings Hydra's state again, and setting it would search for all plugins again
        Singleton.set_state = staticmethod(lambda state: None)  # type: ignore[method-assign]
    _state.pool.claim_core()
    return _state


def _end_with(sweep: int) -> None:
    """Launchers' processes outlive a sweep that is killed, some for minutes, and would keep their cores."""
    parent = os.getppid()
    while os.getppid() == parent and alive(sweep):
        time.sleep(PARENT_SECONDS)
    os._exit(1)


def _has_good_record(folder: Path, key: str) -> bool:
    with suppress(records.RecordError):
        return records.read_record(records.record_path(folder, key)).status == "ok"
    return False

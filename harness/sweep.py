"""`spinbench sweep`: a Hydra application whose jobs are cells, each measured in a process of its own."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf

from spinbench import composition, display, environment, records
from spinbench.atomic import write_json
from spinbench.budget import Budget
from spinbench.errors import SpinbenchError
from spinbench.isolation import Pool
from spinbench.measure import cell_of, measure_cell
from spinbench.records import COMMAND_FILE
from spinbench.searchpath import PACKAGE

INTERRUPTED = 130
_ASKS_HYDRA = {"--help", "-h", "--hydra-help", "--cfg", "-c", "--info", "-i", "--shell-completion", "-sc"}

_state: _State | None = None


class _AbortError(BaseException):
    """Ends a sweep from within a job; Hydra would go on after an Exception."""

    def __init__(self, error: SpinbenchError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass
class _State:
    """Of the process that runs jobs. A launcher's own processes get one without a display."""

    pool: Pool
    display: display.Display | None = None
    varied: tuple[str, ...] = ()


@dataclass(frozen=True)
class Arguments:
    """The command line after `spinbench sweep`.

    Attributes:
        flags: of Hydra, in its order.
        overrides: NAME=VALUE.
        resume: folder of the sweep to go on with.
    """

    flags: tuple[str, ...]
    overrides: tuple[str, ...]
    resume: Path | None

    @classmethod
    def parse(cls, argv: Sequence[str]) -> Arguments:
        """Flags may stand anywhere; `--resume FOLDER` without overrides takes those of the first start.

        Raises:
            SpinbenchError: the folder to resume is none of a sweep.
        """
        flags: list[str] = []
        overrides: list[str] = []
        resume: Path | None = None
        rest = list(argv)
        while rest:
            word = rest.pop(0)
            name, _, value = word.partition("=")
            if name == "--resume":
                if not value and not rest:
                    raise SpinbenchError("--resume needs the folder of a sweep: --resume FOLDER")
                resume = Path(value or rest.pop(0))
            elif name in ("--cfg", "-c", "--info", "-i", "--package", "-p", "--config-dir", "-cd"):
                flags += [word] if value or not rest else [word, rest.pop(0)]
            else:
                (flags if word.startswith("-") else overrides).append(word)
        if resume is not None and not overrides:
            overrides = _first_overrides(resume)
        return cls(tuple(flags), tuple(overrides), resume)

    @property
    def multirun(self) -> bool:
        """Whether all combinations were asked for."""
        return bool({"-m", "--multirun"} & set(self.flags))


def sweep(argv: Sequence[str]) -> int:
    """Run a sweep.

    Returns:
        The exit status: 0, 1 if a cell failed, 130 after an interruption.

    Raises:
        SpinbenchError: nothing was measured, because an argument is wrong; or a record could not be written.
    """
    arguments = Arguments.parse(argv)
    if _ASKS_HYDRA & {flag.partition("=")[0] for flag in arguments.flags}:
        _run_hydra([*arguments.flags, *arguments.overrides])
        return 0
    plan = composition.plan(arguments.overrides, multirun=arguments.multirun)
    _check(plan.config)
    folder = _open_folder(arguments, plan.config)
    state = environment.git_state(environment.root())
    forced = [f"{name}={_quoted(value)}" for name, value in {f"git.{key}": state[key] for key in state}.items()]
    forced.append(f"sweep_dir={_quoted(str(folder))}")
    # argparse wants all flags before the overrides
    flags = [flag for flag in arguments.flags if flag not in ("-m", "--multirun")] + ["-m"] * plan.multirun
    output = display.console()
    output.print(f"{plan.cells} cell{'s' * (plan.cells > 1)} into {display.shown(folder)}", soft_wrap=True)
    output.print(
        f"after an interruption: spinbench sweep --resume {shlex.quote(display.shown(folder))}", soft_wrap=True
    )
    # the axes are named anyway; launchers and the like are not the cell's
    varied = tuple(key for key in plan.varied if key not in records.CELL[:3] and not key.startswith(("hydra", "+")))
    started = int(time.time())
    stopped: Exception | None = None
    with _job_state(display.Display(output, plan.cells), varied), _interruptible() as interrupted:
        try:
            _run_hydra([*flags, *arguments.overrides, *forced])
        except KeyboardInterrupt:
            interrupted.set()
        except _AbortError as abort:
            stopped = abort.error
        except Exception as error:  # a defect of the harness or of a launcher: the records are there all the same
            stopped = error
    status = _conclude(folder, started, plan.config.report)
    if stopped is not None and not interrupted.is_set():
        raise stopped
    if interrupted.is_set():
        output.print(
            f"interrupted; go on with: spinbench sweep --resume {shlex.quote(display.shown(folder))}", soft_wrap=True
        )
        return INTERRUPTED
    return status


def job(config: DictConfig) -> str:
    """One cell of a sweep: measure it unless it has a good record, and write the record."""
    global _state
    if _state is None:
        _state = _State(Pool())
    whole: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    cell = cell_of(whole)
    folder, state = Path(whole["sweep_dir"]), whole["git"]
    varied = {key: OmegaConf.select(config, key) for key in _state.varied}
    name = display.cell_name(records.axes(cell), varied)
    if _state.display is not None:
        _state.display.begin(name)
    record = None
    if not _has_good_record(folder, records.cell_key(cell, state)):
        record = measure_cell(whole, git=state, pool=_state.pool)
        try:
            records.write_record(folder, record)
        except records.RecordError as error:
            raise _AbortError(error) from error
    if _state.display is not None:
        _state.display.end(name, record)
    return "measured before" if record is None else str(record["status"])


def _conclude(folder: Path, started: int, name: str | None) -> int:
    """Report and history of what was measured; the exit status."""
    from spinbench import report

    try:
        found = records.latest(records.read_records(folder))
    except records.RecordError:
        return 1  # ended before the first record
    report.show(found, folder, name)
    for line in report.history([folder]):
        display.console().print(line, soft_wrap=True)
    failed = any(record["status"] == "failed" and record["started_at"] >= started for record in found)
    if all(record["status"] == "skipped" for record in found):
        raise SpinbenchError(f"nothing could be measured: {found[0]['error']}")
    return int(failed)


def _check(config: DictConfig) -> None:
    """What can be said about the first cell without measuring it.

    Raises:
        SpinbenchError: a value is missing or makes no sense.
    """
    with composition.explained():
        # one by one, for values that refer to parts which are none of the cell
        plain: dict[str, Any] = {name: _resolved(config[name]) for name in records.CELL}
        for name in ("chains", "seed"):
            if not isinstance(plain[name], int) or plain[name] < (name == "chains"):
                raise SpinbenchError(
                    f"{name}={plain[name]} was given; an integer, {int(name == 'chains')} or more, is needed"
                )
        Budget(**plain["budget"])
        if config.report is not None:
            from spinbench import report

            report.find(config.report)


def _resolved(node: Any) -> Any:
    config = OmegaConf.is_config(node)
    return OmegaConf.to_container(node, resolve=True, throw_on_missing=True) if config else node


def _open_folder(arguments: Arguments, config: DictConfig) -> Path:
    """The sweep's folder, made and tried."""
    name = arguments.resume or config.sweep_dir
    folder = Path(name) if name else _fresh_folder()
    folder = folder.absolute()
    command = folder / COMMAND_FILE
    try:
        (folder / "records").mkdir(parents=True, exist_ok=True)
        write_json(command, {"overrides": list(arguments.overrides), "report": config.report})
    except OSError as error:
        raise SpinbenchError(
            f"the folder {folder} cannot be written ({error.strerror or error}); choose another with sweep_dir=FOLDER"
        ) from error
    return folder


def _fresh_folder() -> Path:
    stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
    folder, number = Path("multirun") / stamp, 2
    while folder.exists():
        folder, number = Path("multirun") / f"{stamp}_{number}", number + 1
    return folder


def _first_overrides(folder: Path) -> list[str]:
    try:
        return list(map(str, json.loads((folder / COMMAND_FILE).read_text(encoding="utf-8"))["overrides"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SpinbenchError(
            f"{folder} is not the folder of a sweep (it has no readable {COMMAND_FILE}), so there is nothing to resume"
        ) from error


def _has_good_record(folder: Path, key: str) -> bool:
    with suppress(records.RecordError):
        return bool(records.read_record(records.path_of(folder, key))["status"] == "ok")
    return False


def _quoted(value: str | bool | None) -> str:
    """For Hydra's grammar, which reads 12e3 as a number: strings in quotes."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    escaped = value.replace("\\", "\\\\") if value.endswith("\\") else value
    return "'" + escaped.replace("'", "\\'") + "'"


def _run_hydra(arguments: Sequence[str]) -> None:
    """Hydra reads the command line from sys.argv, and raises instead of exiting under HYDRA_FULL_ERROR."""
    from spinbench import searchpath

    searchpath.install()
    before = sys.argv, dict(os.environ)
    sys.argv = ["spinbench sweep", *arguments]
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        with composition.explained(), _combinations_unchecked():
            hydra.main(version_base="1.3", config_path=f"pkg://{PACKAGE}", config_name="config")(job)()
    finally:
        sys.argv = before[0]
        os.environ.clear()
        os.environ.update(before[1])


@contextmanager
def _combinations_unchecked() -> Iterator[None]:
    """Spare Hydra composing every cell before the first runs, 0.1 s each: `composition.plan` tried all values."""
    from hydra.plugins.sweeper import Sweeper

    check = Sweeper.validate_batch_is_legal
    Sweeper.validate_batch_is_legal = lambda self, batch: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        Sweeper.validate_batch_is_legal = check  # type: ignore[method-assign]


@contextmanager
def _job_state(shown: display.Display, varied: tuple[str, ...]) -> Iterator[None]:
    global _state
    _state = _State(Pool(), shown, varied)
    try:
        with shown:
            yield
    finally:
        _state.pool.close()
        _state = None


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Ctrl-C and a polite kill end the sweep, with workers stopped and what was measured recorded.

    Yields:
        Set by the signal itself: libraries that it lands in may turn the KeyboardInterrupt into an error of theirs.
    """
    received = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.set()
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

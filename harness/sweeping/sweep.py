"""`spinbench sweep`: a Hydra application whose jobs are cells, each measured in a process of its own."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import hydra
from hydra.plugins.sweeper import Sweeper

from spinbench.conf import searchpath
from spinbench.errors import SpinbenchError
from spinbench.foundation import atomic, git, interruptions, remarks
from spinbench.foundation.overrides import format_value, quote
from spinbench.measuring import environment, provenance, records
from spinbench.metrics import registry as metrics
from spinbench.reporting import progress_display, summary
from spinbench.sweeping import (
    cellconfigs,
    composition,
    hydra_errors,
    job,
    launchers,
    preflight,
    profiling,
    search,
    sweepers,
)
from spinbench.sweeping.arguments import Arguments, read_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from omegaconf import DictConfig

SWEEPERS: dict[str, type[Sweeper]] = {sweepers.BASIC: sweepers.ProductSweeper, search.TARGET: search.Search}
_ASKS_HYDRA = {"--help", "-h", "--hydra-help"}
_ASKS_OF_A_CELL = {"--cfg", "-c", "--info", "-i"}


def sweep(arguments: Arguments) -> int:
    """Run a sweep.

    Returns:
        The exit status: 0, 1 if a cell failed, 130 after an interruption.

    Raises:
        SpinbenchError: nothing was measured, because an argument is wrong; or a record could not be written.
    """
    flags = {flag.partition("=")[0] for flag in arguments.flags}
    if _ASKS_HYDRA & flags:
        _run_hydra([*arguments.flags, *arguments.overrides])
        return 0
    entered = time.perf_counter()
    plan = composition.plan(arguments.overrides, multirun=arguments.multirun)
    if _ASKS_OF_A_CELL & flags:
        _show(arguments, plan)
        return 0
    folder = open_checked(arguments, plan)
    return measure(arguments, plan, folder, entered)


def open_checked(arguments: Arguments, plan: composition.Plan) -> Path:
    """The folder of a sweep about which nothing is wrong that can be said beforehand.

    Raises:
        SpinbenchError: a model's file is not there, or none can be made with a value, the launcher cannot run it, or
            the folder cannot be written.
    """
    preflight.check_files(arguments, plan.config)
    preflight.check(plan)
    preflight.check_device(plan)
    with hydra_errors.explain_errors():
        launchers.check(plan.config, plan.cells, multirun=plan.multirun)
    return open_folder(arguments, plan.config.sweep_dir, plan.config.report)


def measure(arguments: Arguments, plan: composition.Plan, folder: Path, entered: float) -> int:
    """Measure the cells and report; returns and raises as `sweep` does.

    Args:
        arguments, plan: of the sweep.
        folder: for its records.
        entered: when it began, on the clock `time.perf_counter`.
    """
    line = _command_line(arguments, plan, folder)
    output = progress_display.console()
    bound = "at most " if search.is_search(plan.config) and plan.left_out else ""
    output.print(
        f"{bound}{remarks.format_count(plan.cells, 'cell')} into {progress_display.short_path(folder)}", soft_wrap=True
    )
    resume = arguments.again(progress_display.short_path(folder))
    output.print(f"after an interruption: {resume}", soft_wrap=True)
    clock = profiling.Clock(earlier=records.record_ids(folder), before=time.perf_counter() - entered)
    stopped, interrupted = _run_cells(line, plan, folder, resume)
    with interruptions.interruptible(late=True) as late:
        status = _conclude(folder, plan.config.report, clock)
        if search.is_search(plan.config):
            output.print("\n".join(search.summarise(folder, arguments.overrides)), soft_wrap=True)
    if arguments.profile:
        clock.show(output, folder, wall=time.perf_counter() - entered)
    if interrupted or late.is_set():
        output.print(f"interrupted; go on with: {resume}", soft_wrap=True)
        return interruptions.STATUS
    if stopped is not None:
        raise stopped
    return status


def _show(arguments: Arguments, plan: composition.Plan) -> None:
    """Let Hydra show the configuration of the first cell: it has none of several."""
    if plan.cells > 1:
        print(f"the first of {plan.cells} cells:", file=sys.stderr)
    _run_hydra([*arguments.flags, *plan.first])


def _command_line(arguments: Arguments, plan: composition.Plan, folder: Path) -> list[str]:
    """For Hydra: what was given, the state of the code, and where records go."""
    if (history := environment.history_root()) is not None:
        git.note_versions(history, provenance.plugin_states())
    state = environment.code_state()
    forced = [f"git.{key}={format_value(value)}" for key, value in state.items()]
    forced.append(f"sweep_dir={quote(str(folder))}")
    # argparse needs all flags before the overrides
    flags = [*arguments.flags, *["-m"] * plan.multirun]
    overrides = list(arguments.overrides)
    if plan.multirun:
        overrides = cellconfigs.of_cells_alone(overrides, plan.varied)
    return [*flags, *overrides, *forced]


def _run_cells(line: Sequence[str], plan: composition.Plan, folder: Path, resume: str) -> tuple[Exception | None, bool]:
    """What ended the sweep early, and whether it was interrupted."""
    stopped: Exception | None = None
    memory = launchers.divide_memory(plan.config, plan.cells)
    with memory, _jobs(plan, folder), interruptions.interruptible() as interrupted:
        job.watch_interrupts(interrupted)
        try:
            _run_hydra(line)
        except KeyboardInterrupt:
            interrupted.set()
        except job.AbortError as abort:
            stopped = SpinbenchError(*abort.args)
        except SpinbenchError as error:
            stopped = error
        except Exception as error:
            # A bug in the harness or in a launcher; the records so far are kept.
            stopped = _explain_failure(error, plan.config, resume)
    return stopped, interrupted.is_set()


def _explain_failure(error: Exception, config: DictConfig, resume: str) -> Exception:
    """What ended a sweep from outside of spinbench, as a sentence; others are defects and keep their traceback."""
    text = f"{type(error).__name__}: {' '.join(str(error).split())}"
    if launchers.side_by_side(config):
        failure = SpinbenchError(f"the launcher failed with {text}; what was measured is kept, go on with: {resume}")
    elif isinstance(error, OSError):
        failure = SpinbenchError(f"the sweep was stopped by {text}; what was measured is kept, go on with: {resume}")
    else:
        return error
    failure.__cause__ = error
    return failure


def _conclude(folder: Path, name: str | None, clock: profiling.Clock) -> int:
    """Report and history of what was measured; the exit status."""
    atomic.clear_fragments(folder / "records")
    try:
        everything = records.read_records(folder)
    except records.RecordError as error:
        if any((folder / "records").glob("*.json")):
            print(f"spinbench: {error}", file=sys.stderr)
        # The sweep ended before its first record.
        return 1
    cell_records = records.latest_per_cell(everything, clock.earlier)
    status = int(any(record.status == "failed" and record.id not in clock.earlier for record in cell_records))
    output = progress_display.console()
    with clock.stages("report"):
        try:
            summary.print_report(cell_records, folder, name)
        except OSError as error:
            output.print(f"the report could not be written into {folder}: {error.strerror or error}", soft_wrap=True)
            status = 1
    with clock.stages("history"):
        for line in summary.enter_into_history([folder]):
            output.print(line, soft_wrap=True)
    for reason in metrics.unusable_metrics().values():
        output.print(f"a metric was left out: {reason}", soft_wrap=True)
    wrong = [why for record in cell_records for why in metrics.measurement_failures(record.content["metrics"]).values()]
    for why, count in Counter(wrong).items():
        output.print(f"{why} ({count} of {len(cell_records)} cells)", soft_wrap=True)
    if all(record.status == "skipped" for record in cell_records):
        raise SpinbenchError(f"nothing could be measured: {cell_records[0]['error']}")
    return status


def open_folder(arguments: Arguments, sweep_dir: str | None, report: str | None) -> Path:
    """The sweep's folder, made and tried: the one that is resumed or asked for, or a new one.

    Raises:
        SpinbenchError: it cannot be written.
    """
    folder = Path(arguments.resume or sweep_dir or _fresh_folder()).absolute()
    command = folder / records.COMMAND_FILE
    try:
        (folder / "records").mkdir(parents=True, exist_ok=True)
        for part in (folder, folder / "records"):
            atomic.clear_fragments(part)
        overrides, started_in = list(arguments.overrides), os.getcwd()
        if arguments.resume is not None:
            overrides, started_in = read_command(folder)
        command_line = {"overrides": overrides, "started_in": started_in, "report": report}
        atomic.write_json(command, command_line)
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


def _run_hydra(arguments: Sequence[str]) -> None:
    """Hydra reads the command line from sys.argv, and raises instead of exiting under HYDRA_FULL_ERROR."""
    searchpath.install()
    cellconfigs.forget()
    before = sys.argv, dict(os.environ)
    sys.argv = ["spinbench sweep", *arguments]
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        with hydra_errors.explain_errors(), sweepers.install(SWEEPERS):
            hydra.main(config_path=f"pkg://{searchpath.PACKAGE}", config_name="config", **searchpath.RUNNING)(job.run)()
    finally:
        sys.argv = before[0]
        os.environ.clear()
        os.environ.update(before[1])


@contextmanager
def _jobs(plan: composition.Plan, folder: Path) -> Iterator[None]:
    """What jobs need while Hydra runs them, here or in a launcher's processes, and what tells of them."""
    # the axes are in the name anyway, and launchers do not belong to a cell
    hidden = (*records.CELL[:3], "launcher")
    varied = tuple(key for key in plan.varied if key not in hidden and not key.startswith(("hydra", "launcher.", "+")))
    progress = progress_display.Display(progress_display.console(), plan.cells)
    if not launchers.side_by_side(plan.config):
        job.enter(job.State(display=progress, varied=varied, idle_since=time.perf_counter()))
        try:
            with progress:
                yield
        finally:
            job.leave()
        return
    watcher: AbstractContextManager[object] = progress_display.RecordWatcher(progress, folder, varied)
    try:
        with launchers.tie_processes_to_parent(plan.config), progress, watcher:
            yield
    finally:
        launchers.finish(plan.config)
        job.leave()
        if progress.remaining:
            progress_display.console().print(f"{progress.remaining} of {plan.cells} cells were not measured now")

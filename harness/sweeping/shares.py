"""Shares of a sweep's cells: what a job of submitit's or a task of ray's measures, one cell after another.

Hydra's launchers make a job of each cell. A job of submitit's starts Python, and loads compiled programs, which takes
longer than most cells; ray composes all cells in the sweep's own process and schedules each by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.core.singleton import Singleton
from hydra.core.utils import run_job, setup_globals
from omegaconf import DictConfig, OmegaConf, open_dict

from spinbench.sweeping import launchers

MOST_JOBS = 1000
"""Of an array; SLURM's MaxArraySize is 1001 unless a cluster says otherwise."""
ROUNDS = 4
"""Tasks for each of ray's processes at least, if there are enough cells: all end at about the same time."""


@contextmanager
def dealt(config: DictConfig) -> Iterator[None]:
    """Let the launchers of submitit and ray run shares of the cells instead of single ones."""
    if launchers.is_local(config) or launchers.is_slurm(config):
        from submitit import AutoExecutor

        owner, name, ours = AutoExecutor, "map_array", submitting(config, AutoExecutor.map_array)
    elif launchers.is_ray(config):
        from hydra_plugins.hydra_ray_launcher import _core

        owner, name, ours = _core, "launch", launch_on_ray
    else:
        yield
        return
    theirs = getattr(owner, name)
    setattr(owner, name, ours)
    try:
        yield
    finally:
        setattr(owner, name, theirs)


def count(config: DictConfig, cells: int) -> int:
    """Into how many jobs of submitit's so many cells go.

    Here: `launcher.jobs`. On a cluster: as many as run at a time, more for at most `launcher.cells` in each, and never
    more than an array may have.
    """
    jobs = int(OmegaConf.select(config, "launcher.jobs", default=cells))
    if launchers.is_slurm(config):
        each = int(OmegaConf.select(config, "launcher.cells", default=1))
        jobs = min(max(jobs, -(-cells // each)), MOST_JOBS)
    return min(jobs, cells)


class Share:
    """A job of submitit's for several cells.

    Args:
        launcher: Hydra's, which runs a cell when called.
    """

    def __init__(self, launcher: Any) -> None:
        self._launcher = launcher

    def __call__(self, cells: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What the launcher returns for each of the cells, given as its arguments."""
        return [self._launcher(*cell) for cell in cells]

    def checkpoint(self, cells: Sequence[tuple[Any, ...]]) -> Any:
        """Called by submitit where SLURM stops a job that is to be submitted again; good records are not repeated."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, cells)


class _Outcome:
    """Of one cell, as Hydra's launcher asks a job of submitit's for it."""

    def __init__(self, job: Any, place: int) -> None:
        self._job = job
        self._place = place

    def results(self) -> list[Any]:
        """Waits for the job."""
        return [self._job.result()[self._place]]


def submitting(config: DictConfig, submit: Any) -> Any:
    """In place of submitit's `map_array`: every n-th cell for each of n jobs, so that shares are alike."""

    def map_array(executor: Any, launcher: Any, *columns: Sequence[Any]) -> list[_Outcome]:
        cells = list(zip(*columns, strict=True))
        step = count(config, len(cells))
        jobs = submit(executor, Share(launcher), [cells[first::step] for first in range(step)])
        return [_Outcome(jobs[place % step], place // step) for place in range(len(cells))]

    return map_array


def launch_on_ray(launcher: Any, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[Any]:
    """In place of the launcher's: tasks of neighbouring cells, which are composed where they run."""
    import ray
    from hydra_plugins.hydra_ray_launcher._launcher_util import start_ray

    setup_globals()
    Path(str(launcher.config.hydra.sweep.dir)).mkdir(parents=True, exist_ok=True)
    start_ray(launcher.ray_cfg.init)
    processors = max(int(ray.cluster_resources().get("CPU", 1)), 1)
    most = int(OmegaConf.select(launcher.config, "launcher.cells", default=1))
    each = min(max(len(job_overrides) // (ROUNDS * processors), 1), most)
    cells = list(enumerate(map(list, job_overrides), initial_job_idx))
    common = ray.put((launcher.hydra_context, launcher.config, launcher.task_function, Singleton.get_state()))
    options: Any = OmegaConf.to_container(launcher.ray_cfg.remote, resolve=True)
    task = ray.remote(**options)(run_on_ray) if options else ray.remote(run_on_ray)
    tasks = [task.remote(common, cells[first : first + each]) for first in range(0, len(cells), each)]
    return [outcome for done in tasks for outcome in ray.get(done)]


def run_on_ray(common: tuple[Any, ...], cells: Sequence[tuple[int, list[str]]]) -> list[Any]:
    """A task: Hydra's return of each of the cells, given as number and overrides."""
    context, config, function, state = common
    setup_globals()
    Singleton.set_state(state)
    return [_run(context, config, function, number, overrides) for number, overrides in cells]


def _run(context: Any, config: DictConfig, function: Any, number: int, overrides: list[str]) -> Any:
    composed = context.config_loader.load_sweep_config(config, overrides)
    with open_dict(composed):
        composed.hydra.job.id, composed.hydra.job.num = f"job_id_for_{number}", number
    return run_job(
        hydra_context=context,
        task_function=function,
        config=composed,
        job_dir_key="hydra.sweep.dir",
        job_subdir_key="hydra.sweep.subdir",
    )

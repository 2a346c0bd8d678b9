"""Launchers: what runs the cells of a sweep side by side, and whether there is a core for each of them.

`launcher=joblib|submitit|slurm|ray` (conf/launcher) chooses one of Hydra's; without it cells run one after another.
Timed cells never share a core: more at a time than there are cores is refused here, each process locks a core of its
own (`isolation.Core`), and a cell that other programs disturbed all the same says so in its record. Processes of joblib
and ray stay for the next cell by themselves; submitit's, which start for a job and end with it, are given a share of
the cells each (`dealt`).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hydra.core.singleton import Singleton
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from spinbench import environment
from spinbench.errors import SpinbenchError, UnavailableError

PROCESS_VARIABLE = "SPINBENCH_SWEEP_PROCESS"
"""Environment variable with the number of the process that runs the sweep."""
EXTRAS = {"joblib": "joblib", "submitit_local": "submitit", "submitit_slurm": "submitit", "ray": "ray"}
"""Of spinbench, to install Hydra's launchers with."""
MOST_JOBS = 1000
"""Of an array; SLURM's MaxArraySize is 1001 unless a cluster says otherwise."""


class Trim(Callback):
    """Drops the configuration from what a job returns: 0.1 MB that would be kept, and sent around, for each cell."""

    def on_job_end(self, config: DictConfig, job_return: Any, **kwargs: Any) -> None:
        """Called by Hydra where the job ran."""
        job_return.cfg = job_return.hydra_cfg = None


def side_by_side(config: DictConfig) -> bool:
    """Whether jobs run in processes of a launcher instead of the sweep's own."""
    return not _target(config).endswith(".BasicLauncher")


def stops_at_once(config: DictConfig) -> bool:
    """Whether a job can end the sweep by raising; other launchers run what they have been given to its end."""
    return not side_by_side(config) or _target(config).endswith(".JoblibLauncher")


def check(config: DictConfig, cells: int, *, multirun: bool) -> None:
    """Refuse what would time two cells on one core of this machine.

    Args:
        config: the first cell's, Hydra's node included.
        cells: of the sweep.
        multirun: whether Hydra runs several jobs; it launches a single one itself.

    Raises:
        SpinbenchError: more cells at a time than there are cores; a number of jobs that is none.
    """
    if not side_by_side(config):
        return
    if not multirun:
        raise SpinbenchError("a launcher runs several cells; add -m, or name more than one value of something")
    jobs, name = _jobs(config, cells)
    if jobs is None:
        return
    cores = len(environment.cores())
    if not isinstance(jobs, int) or jobs < 1:
        raise SpinbenchError(f"{name} was given; an integer from 1 to {cores}, the cores here, is needed")
    if jobs > cores:
        raise SpinbenchError(
            f"{name} means {jobs} cells at a time, but this machine has {cores} core{'s' * (cores > 1)} for them and "
            f"timed cells never share one; give launcher.jobs={cores} or less"
        )


@contextmanager
def one_state() -> Iterator[None]:
    """Let Hydra copy the state that its launchers send with each job once, and not for each: 0.02 s and 0.5 MB."""
    take = Singleton.get_state
    Singleton.get_state = staticmethod(functools.cache(take))  # type: ignore[method-assign]
    try:
        yield
    finally:
        Singleton.get_state = staticmethod(take)  # type: ignore[method-assign]


@contextmanager
def attached(config: DictConfig) -> Iterator[None]:
    """Let processes that launchers start on this machine know whose they are, so that they end with it."""
    if _is_slurm(config):  # jobs of a cluster have a life of their own
        yield
        return
    os.environ[PROCESS_VARIABLE] = str(os.getpid())
    try:
        yield
    finally:
        del os.environ[PROCESS_VARIABLE]


class Share:
    """Cells that one of submitit's jobs runs, one after another: Python and compiled programs are loaded once.

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


@contextmanager
def dealt(config: DictConfig) -> Iterator[None]:
    """Let each of submitit's jobs run a share of the cells, every n-th for n jobs, so that shares are alike."""
    if not (_is_local(config) or _is_slurm(config)):
        yield
        return
    from submitit import AutoExecutor

    submit = AutoExecutor.map_array

    def submit_shares(executor: Any, launcher: Any, *columns: Sequence[Any]) -> list[_Outcome]:
        cells = list(zip(*columns, strict=True))
        count = shares(config, len(cells))
        jobs = submit(executor, Share(launcher), [cells[first::count] for first in range(count)])
        return [_Outcome(jobs[place % count], place // count) for place in range(len(cells))]

    AutoExecutor.map_array = submit_shares  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        AutoExecutor.map_array = submit  # type: ignore[method-assign]


def shares(config: DictConfig, cells: int) -> int:
    """How many jobs of submitit's run so many cells: `launcher.jobs` here, `launcher.cells` in each on a cluster."""
    if _is_local(config):
        return min(int(OmegaConf.select(config, "launcher.jobs", default=cells)), cells)
    each = int(OmegaConf.select(config, "launcher.cells", default=1))
    return min(-(-cells // each), MOST_JOBS)


def finish(config: DictConfig) -> None:
    """End the processes that a launcher keeps waiting for more jobs: they hold cores."""
    if _target(config).endswith(".JoblibLauncher"):
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True, kill_workers=True)
    elif _target(config).endswith(".RayLauncher"):
        import ray

        ray.shutdown()


def not_installed(name: str) -> SpinbenchError | None:
    """The error for a launcher of an extra that is not installed; None for a name that is no launcher's."""
    extra = EXTRAS.get(name)
    if extra is None:
        return None
    return UnavailableError(f"the launcher {name} is not installed here; pip install 'spinbench[{extra}]'")


def _jobs(config: DictConfig, cells: int) -> tuple[Any, str]:
    """How many cells run at a time here, and the setting that says so; None: they run elsewhere."""
    chosen, target = config.hydra.launcher, _target(config)
    if target.endswith(".JoblibLauncher"):
        jobs = chosen.n_jobs
        if isinstance(jobs, int) and jobs < 0:  # as joblib counts: -1 means all processors
            jobs = max(len(environment.affinity()) + 1 + jobs, 1)
        return jobs, f"hydra.launcher.n_jobs={chosen.n_jobs}"
    if _is_slurm(config):
        each = OmegaConf.select(config, "launcher.cells", default=1)
        if not isinstance(each, int) or each < 1:
            raise SpinbenchError(f"launcher.cells={each} was given; an integer from 1, the cells of a job, is needed")
    if _is_local(config):
        jobs = OmegaConf.select(config, "launcher.jobs")
        if jobs is not None:
            return jobs, f"launcher.jobs={jobs}"
        batch = config.hydra.sweeper.get("max_batch_size")
        return cells if batch is None else batch, f"hydra.sweeper.max_batch_size={'null' if batch is None else batch}"
    if target.endswith(".RayLauncher"):
        start = chosen.ray.init
        if start.get("address") is not None:
            return None, ""
        given = start.get("num_cpus")
        name = f"hydra.launcher.ray.init.num_cpus={'null' if given is None else given}"
        return len(environment.affinity()) if given is None else given, name
    return None, ""


def _is_local(config: DictConfig) -> bool:
    return _target(config).endswith("submitit_launcher.LocalLauncher")


def _is_slurm(config: DictConfig) -> bool:
    return _target(config).endswith(".SlurmLauncher")


def _target(config: DictConfig) -> str:
    return str(config.hydra.launcher._target_)

"""Launchers: what runs the cells of a sweep side by side, and whether there is a core for each of them.

`launcher=joblib|submitit|slurm|ray` (conf/launcher) chooses one of Hydra's; without it cells run one after another.
Timed cells never share a core: more at a time than there are cores is refused here, each process locks a core of its
own (`isolation.Core`), and a cell that other programs disturbed all the same says so in its record. joblib's processes
take cell after cell; a job of submitit's and a task of ray's get several (`sweepers`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hydra.core.utils import JobReturn
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from spinbench.errors import SpinbenchError, UnavailableError
from spinbench.foundation import overrides, platforms, remarks
from spinbench.measuring import environment
from spinbench.reference import memory

# Environment variable with the id of the process that runs the sweep.
PROCESS_VARIABLE = "SPINBENCH_SWEEP_PROCESS"
# Extras of spinbench that install Hydra's launchers.
EXTRAS = {"joblib": "joblib", "submitit_local": "submitit", "submitit_slurm": "submitit", "ray": "ray"}


class Trim(Callback):
    """Drops the configuration from what a job returns: 0.1 MB that would be kept, and sent around, for each cell."""

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: object) -> None:
        """Called by Hydra where the job ran."""
        job_return.cfg = job_return.hydra_cfg = None


def kind(config: DictConfig) -> str:
    """Of the launcher: "Basic", which runs jobs in the sweep's own process, "Joblib", "Ray", "Slurm", "Local", which is
    submitit's for this machine, or that of another."""
    return str(config.hydra.launcher._target_).rpartition(".")[2].removesuffix("Launcher")


def side_by_side(config: DictConfig) -> bool:
    """Whether jobs run in processes of a launcher instead of the sweep's own."""
    return kind(config) != "Basic"


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
    cores = len(environment.timing_cores())
    if not isinstance(jobs, int) or jobs < 1:
        raise SpinbenchError(f"{name} was given; an integer from 1 to {cores}, the cores here, is needed")
    if jobs > cores:
        raise SpinbenchError(
            f"{name} means {jobs} cells at a time, but this machine has {remarks.format_count(cores, 'core')} "
            f"for them and timed cells never share one; give launcher.jobs={cores} or less"
        )


@contextmanager
def tie_processes_to_parent(config: DictConfig) -> Iterator[None]:
    """Let processes that launchers start on this machine know whose they are, so that they end with it."""
    # Jobs on a cluster run independently of this process.
    if kind(config) == "Slurm":
        yield
        return
    os.environ[PROCESS_VARIABLE] = str(os.getpid())
    try:
        yield
    finally:
        del os.environ[PROCESS_VARIABLE]


@contextmanager
def divide_memory(config: DictConfig, cells: int) -> Iterator[None]:
    """Let each cell's exact answers take its share of the memory that is free as the sweep begins.

    The share stands in an environment variable, which launchers on this machine hand on; jobs of a cluster see what is
    free where they run.
    """
    if kind(config) == "Slurm" or memory.VARIABLE in os.environ:
        yield
        return
    jobs = (_jobs(config, cells)[0] or 1) if side_by_side(config) else 1
    os.environ[memory.VARIABLE] = f"{memory.default_max_bytes() / jobs / 2**30:.3g}"
    try:
        yield
    finally:
        del os.environ[memory.VARIABLE]


def finish(config: DictConfig) -> None:
    """End the processes that a launcher keeps waiting for more jobs: they hold cores."""
    if kind(config) == "Joblib":
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True, kill_workers=True)
    elif kind(config) == "Ray":
        import ray

        ray.shutdown()


def ray_processors(config: DictConfig) -> int:
    """How many tasks ray runs at a time, which it says once it has been started; its launcher finds it running."""
    import ray

    if not ray.is_initialized():
        options: Any = OmegaConf.to_container(config.hydra.launcher.ray.init, resolve=True)
        ray.init(**options)
    return max(int(ray.cluster_resources().get("CPU", 1)), 1)


def not_installed(name: str) -> SpinbenchError | None:
    """The error for a launcher of an extra that is not installed; None for a name that is no launcher's."""
    extra = EXTRAS.get(name)
    if extra is None:
        return None
    return UnavailableError(f"the launcher {name} is not installed here; pip install 'spinbench[{extra}]'")


def _jobs(config: DictConfig, cells: int) -> tuple[Any, str]:
    """How many cells run at a time here, and the setting that says so; None: they run elsewhere."""
    chosen, launcher = config.hydra.launcher, kind(config)
    if launcher == "Joblib":
        setting = OmegaConf.select(config, "launcher.jobs", default=1)
        if isinstance(setting, bool) or not isinstance(setting, int):
            raise SpinbenchError(
                f"launcher.jobs={'null' if setting is None else setting} was given; an integer is needed"
            )
        jobs = chosen.n_jobs
        # As in joblib: -1 means all processors.
        if isinstance(jobs, int) and jobs < 0:
            jobs = max(platforms.available_cores() + 1 + jobs, 1)
        return jobs, f"hydra.launcher.n_jobs={chosen.n_jobs}"
    for name in ("cells", "jobs") if launcher == "Slurm" else ("cells",):
        count = OmegaConf.select(config, f"launcher.{name}", default=1)
        if not isinstance(count, int) or count < 1:
            raise SpinbenchError(f"launcher.{name}={count} was given; an integer, 1 or more, is needed")
    if launcher == "Local":
        jobs = OmegaConf.select(config, "launcher.jobs")
        if jobs is not None:
            return jobs, f"launcher.jobs={jobs}"
        batch = config.hydra.sweeper.get("max_batch_size")
        return cells if batch is None else batch, f"hydra.sweeper.max_batch_size={overrides.format_value(batch)}"
    if launcher == "Ray":
        start = chosen.ray.init
        if start.get("address") is not None:
            return None, ""
        count = start.get("num_cpus")
        name = f"hydra.launcher.ray.init.num_cpus={overrides.format_value(count)}"
        return platforms.available_cores() if count is None else count, name
    return None, ""

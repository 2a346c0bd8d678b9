"""Sweepers: what makes the cells of a sweep, and has a launcher run them.

Both are plugins of Hydra's. They give the launcher a loader that composes cells quickly (`cellconfigs`), and deal cells
out in shares where a job of each cell would cost too much: one of submitit's starts Python and loads compiled programs,
which takes longer than most cells, and ray composes the configuration of each task in the sweep's own process. A share
is a job whose overrides are its cells.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hydra.conf import JobConf
from hydra.core.config_loader import ConfigLoader
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, run_job
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

from spinbench.sweeping import cellconfigs, launchers

# Name of Hydra's own sweeper, its default.
BASIC = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"
# Largest size of a job array; SLURM's default MaxArraySize is 1001.
MAX_JOBS = 1000
# Smallest number of tasks per process of ray, if there are enough cells, so that all processes end at about the same
# time.
ROUNDS = 4
# Key of a shard's configuration that holds its cells; a shard's overrides begin with it.
CELLS = "cells_of_a_share"


@contextmanager
def install(sweepers: Mapping[str, type[Sweeper]]) -> Iterator[None]:
    """Let Hydra find sweepers under names of its package of plugins, from which alone it takes them."""
    classes = Plugins.instance().class_name_to_class
    before = dict(classes)
    classes.update(sweepers)
    try:
        yield
    finally:
        classes.clear()
        classes.update(before)


class CellSweeper(Sweeper):
    """What both sweepers do."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Called by Hydra before `sweep`."""
        self._config = config
        self._parser = OverridesParser.create(config_loader=hydra_context.config_loader)
        loader: Any = CellLoader(hydra_context.config_loader)
        context = HydraContext(loader, hydra_context.callbacks)
        self._launcher: Launcher = Plugins.instance().instantiate_launcher(
            hydra_context=context, task_function=ShareTask(context, task_function, config), config=config
        )

    def left_out(self, arguments: Sequence[str]) -> tuple[cellconfigs.Exclusion, ...]:
        """Which combinations are no cells, where these are the overrides of the command line."""
        keys = [override.get_key_element() for override in self._parser.parse_overrides(list(arguments))]
        return cellconfigs.exclusion_entries(self._config, keys)

    def launch(self, cells: Sequence[list[str]], first: int) -> list[JobReturn]:
        """Run cells; what Hydra returns for each.

        Args:
            cells: the overrides of each.
            first: the number of the first one in the sweep.
        """
        jobs = count_jobs(self._config, len(cells))
        if jobs == len(cells):
            return list(self._launcher.launch(cells, initial_job_idx=first))
        shares = [[CELLS, *map(json.dumps, cells[turn::jobs])] for turn in range(jobs)]  # similar shards
        returns = [job_return.return_value for job_return in self._launcher.launch(shares, initial_job_idx=first)]
        return [returns[place % jobs][place // jobs] for place in range(len(cells))]


class ProductSweeper(CellSweeper):
    """In place of Hydra's own: all combinations of the values that are given, but for those that are left out.

    It composes no cell beforehand, which takes 0.1 s each: `composition.plan` has tried all values.
    """

    def __init__(self, max_batch_size: int | None, params: DictConfig | None = None) -> None:
        self._batch = max_batch_size
        self._params = [f"{key!s}={value}" for key, value in (params or {}).items()]

    def sweep(self, arguments: list[str]) -> None:
        """Measure them; called by Hydra."""
        folder = Path(self._config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(self._config, folder / "multirun.yaml")
        overrides = self._parser.parse_overrides([*self._params, *arguments])
        cells = cellconfigs.product_cells(overrides, self.left_out(arguments))
        step = self._batch or len(cells)
        for first in range(0, len(cells), step):
            for job_return in self.launch(cells[first : first + step], first):
                # Raises the exception that ended the job.
                _ = job_return.return_value


class CellLoader:
    """Hydra's loader, but for the configurations of cells and shares.

    Args:
        loader: Hydra's.
    """

    def __init__(self, loader: ConfigLoader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        if name == "_loader":  # during unpickling
            raise AttributeError(name)
        return getattr(self._loader, name)

    def load_sweep_config(self, master_config: DictConfig, sweep_overrides: Sequence[str]) -> DictConfig:
        """Called by launchers. A share's configuration is that of its first cell, and holds all cells."""
        if not sweep_overrides or sweep_overrides[0] != CELLS:
            return cellconfigs.compose(self._loader, master_config, sweep_overrides)
        config = cellconfigs.compose(self._loader, master_config, json.loads(sweep_overrides[1]))
        with open_dict(config):
            config[CELLS] = list(sweep_overrides[1:])
        return config


class ShareTask:
    """What launchers run: a cell, or the cells of a share one after another.

    Args:
        context: Hydra's, with our loader.
        run: measures a cell.
        master: the sweep's configuration.
    """

    def __init__(self, context: HydraContext, run: Callable[[DictConfig], object], master: DictConfig) -> None:
        self._context = context
        self._run = run
        self._master = master

    def __call__(self, config: DictConfig) -> object:
        """What `run` returns; of a share, what Hydra returns of each cell."""
        if CELLS not in config:
            return self._run(config)
        job = HydraConfig.get().job
        return [self._cell(json.loads(line), job) for line in config[CELLS]]

    def _cell(self, overrides: list[str], job: JobConf) -> JobReturn:
        composed = self._context.config_loader.load_sweep_config(self._master, overrides)
        with open_dict(composed):
            composed.hydra.job.id, composed.hydra.job.num = job.id, job.num
        return run_job(
            hydra_context=self._context,
            task_function=self._run,
            config=composed,
            job_dir_key="hydra.sweep.dir",
            job_subdir_key="hydra.sweep.subdir",
        )


def count_jobs(config: DictConfig, cells: int) -> int:
    """Into how many jobs so many cells go: each is its own, unless submitit or ray runs them.

    Of submitit, here: `launcher.jobs`. On a cluster: as many as run at a time, more for at most `launcher.cells` in
    each, and never more than an array may have.
    """
    jobs, launcher = cells, launchers.kind(config)
    if launcher in ("Local", "Slurm"):
        jobs = int(OmegaConf.select(config, "launcher.jobs", default=cells))
    elif launcher == "Ray":
        jobs = ROUNDS * launchers.ray_processors(config)
    if launcher in ("Slurm", "Ray"):
        each = int(OmegaConf.select(config, "launcher.cells", default=1))
        jobs = max(jobs, -(-cells // each))
    if launcher == "Slurm":
        jobs = min(jobs, MAX_JOBS)
    return min(jobs, cells)

"""`hydra/sweeper=optuna`: a sweep that looks for the settings with the least error, where others measure all of them.

Hydra's own plugin for Optuna wants Optuna 2, or a Hydra that is not out yet. This one proposes settings, has them
measured as any other cells, and reads their records; resuming it asks for the same trials and finds those measured.
"""

from __future__ import annotations

import json
import math
import shlex
import statistics
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig

from spinbench.errors import SpinbenchError, UnavailableError
from spinbench.foundation.atomic import write_json
from spinbench.measuring import record_types, records, trust
from spinbench.sweeping import cellconfigs, sweepers

if TYPE_CHECKING:
    import optuna

# Hydra's name of this sweeper.
TARGET = "hydra_plugins.spinbench.Search"
# File in the sweep's folder with the best settings and all trials.
RESULTS = "search.json"
SAMPLERS = ("tpe", "random")
# Significant digits of proposed numbers, which people read and type.
DIGITS = 4


@dataclass(frozen=True)
class Objective:
    """What is to be least.

    Attributes:
        number: of a record; infinite where nobody vouches for it.
        meaning: for people.
    """

    number: Callable[[record_types.Record], float]
    meaning: str


def _scale_to_one_second(error: Callable[[record_types.Record], float], record: record_types.Record) -> float:
    """Errors of sampling fall as the root of time: that after one second is error times √seconds."""
    value = error(record)
    if math.isinf(value):
        return value
    return value * math.sqrt(record.result.timing.run)


def _cost_of_a_sample(record: record_types.Record) -> float:
    if not trust.is_trusted(record, "marginals"):
        return math.inf
    value = record.metric("seconds_per_ess").value
    return math.inf if value is None else float(value)


OBJECTIVES: Mapping[str, Objective] = {
    "marginal_rmse": Objective(
        partial(_scale_to_one_second, trust.marginal_rmse_or_inf), "RMSE of the marginals after one second"
    ),
    "log_z_error": Objective(
        partial(_scale_to_one_second, trust.log_z_error_or_inf), "|error of log Z| after one second"
    ),
    "time_to_error": Objective(trust.seconds_to_error_or_inf, "seconds to an RMSE of one per cent"),
    "seconds_per_ess": Objective(_cost_of_a_sample, "seconds for an effective sample"),
}


def is_search(config: DictConfig) -> bool:
    """Whether a configuration, Hydra's node included, asks for a search."""
    return str(config.hydra.sweeper._target_) == TARGET


def is_measured_in_each_trial(key: str) -> bool:
    """Whether several values of a key are no choice: an easy model or a lucky seed would be the best."""
    return key.lstrip("+").partition(".")[0] in ("model", "seed", "budget")


def check(config: DictConfig, choices: Mapping[str, Sequence[str]]) -> None:
    """Refuse a search that cannot be made.

    Args:
        config: of the first cell, Hydra's node included.
        choices: the overrides of each key, one a value.

    Raises:
        SpinbenchError: Optuna is not installed, a setting makes no sense, or there is nothing to search.
    """
    if find_spec("optuna") is None:
        raise UnavailableError("a search needs Optuna, which is not installed here; pip install 'spinbench[optuna]'")
    sweeper = config.hydra.sweeper
    for name in ("n_trials", "n_jobs", "seed"):
        value, least = sweeper[name], int(name != "seed")
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise SpinbenchError(f"hydra.sweeper.{name}={value} was given; an integer, {least} or more, is needed")
    for name, allowed in (("objective", tuple(OBJECTIVES)), ("sampler", SAMPLERS)):
        if sweeper[name] not in allowed:
            raise SpinbenchError(f"hydra.sweeper.{name}={sweeper[name]} was given; {', '.join(allowed)} are allowed")
    if not any(len(values) > 1 for key, values in choices.items() if not is_measured_in_each_trial(key)):
        raise SpinbenchError(
            "there is nothing to search: give several values of a setting, or an interval, as in "
            "'method.step_size=tag(log, interval(0.01, 1))'; those of model, seed and budget are measured in each trial"
        )


def cells(config: DictConfig, choices: Mapping[str, Sequence[str]], out: Sequence[cellconfigs.Exclusion]) -> int:
    """How many cells a search measures, at most: which of them are left out may hang on what a trial chooses.

    Raises:
        SpinbenchError: every combination is left out.
    """
    chosen = [key for key in choices if not is_measured_in_each_trial(key)]
    return int(config.hydra.sweeper.n_trials) * cellconfigs.count_cells(choices, out, chosen)


def ends(override: Override) -> list[str]:
    """The least and the greatest value of an interval, and of one that is not of whole numbers another, which is none.

    Raises:
        SpinbenchError: it has no values.
    """
    low, high = _bounds(override)
    values = [low, high]
    if not (isinstance(low, int) and isinstance(high, int)):
        values.append(_round_to_digits(low + 0.382 * (high - low)))
    return list(map(str, values))


def _bounds(override: Override) -> tuple[float, float]:
    interval: Any = override.value()
    low, high = interval.start, interval.end
    if low is None or high is None or not low < high or not all(map(math.isfinite, (low, high))):
        raise SpinbenchError(f"{override.input_line} was given; interval(LOW, HIGH) with LOW < HIGH is needed")
    if "log" in interval.tags and not low > 0:
        raise SpinbenchError(f"{override.input_line} was given; with tag(log, …) the interval begins above 0")
    return low, high


class Search(sweepers.CellSweeper):
    """Hydra's sweeper of that name; see conf/hydra/sweeper/optuna.yaml for its settings."""

    def __init__(
        self, objective: str, n_trials: int, n_jobs: int, sampler: str, seed: int, params: DictConfig | None
    ) -> None:
        self._objective = OBJECTIVES[objective]
        self._trials, self._jobs = n_trials, n_jobs
        self._sampler, self._seed = sampler, seed
        self._params = [f"{key!s}={value}" for key, value in (params or {}).items()]
        self._done: list[dict[str, object]] = []

    def sweep(self, arguments: list[str]) -> None:
        """Measure trial after trial; called by Hydra."""
        parser, folder, out = self._parser, Path(self._config.sweep_dir), self.left_out(arguments)
        overrides_by_key = {
            override.get_key_element(): override for override in parser.parse_overrides([*self._params, *arguments])
        }
        space = {
            key: override
            for key, override in overrides_by_key.items()
            if override.is_sweep_override() and not is_measured_in_each_trial(key)
        }
        fixed = [override for key, override in overrides_by_key.items() if key not in space]
        study, jobs = self._study(), 0
        while len(self._done) < self._trials:
            new_trials = [study.ask() for _ in range(min(self._jobs, self._trials - len(self._done)))]
            chosen = [
                [f"{key}={_suggest(trial, key, override)}" for key, override in space.items()] for trial in new_trials
            ]
            batches = [cellconfigs.product_cells([*fixed, *parser.parse_overrides(lines)], out) for lines in chosen]
            returns = self.launch([cell for batch in batches for cell in batch], jobs)
            jobs += len(returns)
            keys = iter([override.return_value for override in returns])  # raises what a job raised
            for trial, overrides, batch in zip(new_trials, chosen, batches, strict=True):
                value = self._worth(folder, [next(keys) for _ in batch])
                study.tell(trial, value)
                self._done.append({"overrides": overrides, "value": value if math.isfinite(value) else None})
            write_json(folder / RESULTS, {"meaning": self._objective.meaning, "trials": self._done})

    def _study(self) -> optuna.Study:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        if self._sampler == "random":
            sampler: optuna.samplers.BaseSampler = optuna.samplers.RandomSampler(self._seed)
        else:
            with warnings.catch_warnings():  # optuna marks constant_liar as experimental
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                sampler = optuna.samplers.TPESampler(seed=self._seed, constant_liar=self._jobs > 1)
        return optuna.create_study(sampler=sampler, direction="minimize")

    def _worth(self, folder: Path, keys: Sequence[str]) -> float:
        """The geometric mean over a trial's cells, so that no model counts more than another; infinite of none."""
        cell_records = [records.read_record(records.record_path(folder, key)) for key in keys]
        values = [self._objective.number(record) for record in cell_records]
        if not values or math.inf in values:
            return math.inf
        if 0.0 in values:
            return 0.0
        return math.exp(statistics.fmean(map(math.log, values)))


def summarise(folder: Path, overrides: Sequence[str]) -> list[str]:
    """What a search found, in sentences.

    Args:
        folder: of the sweep.
        overrides: that it was given.
    """
    try:
        results = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
        meaning = results["meaning"]
        trials = [trial for trial in results["trials"] if trial["value"] is not None]
    except (OSError, ValueError, KeyError, TypeError):
        # The search ended before its first trial.
        return ["the search has no trial yet"]
    if not trials:
        return [
            f"none of {len(results['trials'])} trials has a number that its verdict stands behind ({meaning}); "
            "where no exact answer is known, search with hydra.sweeper.objective=seconds_per_ess"
        ]
    best = min(trials, key=lambda trial: float(trial["value"]))
    searched = {line.partition("=")[0] for line in best["overrides"]}
    names = [(line, line.partition("=")[0]) for line in overrides]
    of_the_sweep = ("hydra", "launcher", "sweep_dir")
    rest = [line for line, name in names if name not in searched and not name.startswith(of_the_sweep)]
    return [
        f"the best of {len(results['trials'])} trials: {' '.join(best['overrides'])}, with {best['value']:.3g} "
        f"({meaning})",
        f"measure it again: {shlex.join(['spinbench', 'sweep', *rest, *best['overrides']])}",
    ]


def _round_to_digits(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _suggest(trial: optuna.Trial, key: str, override: Override) -> str:
    """The sampler's choice among the values of a sweep, as an override has it."""
    value: Any = override.value()
    if override.is_interval_sweep():
        low, high, log = *_bounds(override), "log" in value.tags
        if isinstance(low, int) and isinstance(high, int):
            return str(trial.suggest_int(key, low, high, log=log))
        return str(min(max(_round_to_digits(trial.suggest_float(key, low, high, log=log)), low), high))
    options = list(override.sweep_string_iterator())
    # Neighbouring values of a range are similar, unlike those of a choice.
    if override.is_range_sweep() and not value.shuffle:
        return str(options[trial.suggest_int(key, 0, len(options) - 1)])
    return str(trial.suggest_categorical(key, options))

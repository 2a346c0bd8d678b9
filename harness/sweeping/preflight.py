"""The files, models and devices of a sweep, looked for once before anything is measured.

What only a model's family or its file refuses is told at once that way, and not by a cell after an hour. It takes
`ALL` seconds at most, in a process of its own: a model that takes longer than `EACH` is left to its cells.
"""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import json
import math
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf

from spinbench.conf import searchpath
from spinbench.errors import ModelError, SpinbenchError, UnknownNameError
from spinbench.foundation.child import DiedError, OverdueError, run_in_child
from spinbench.foundation.overrides import is_assignment
from spinbench.foundation.remarks import remark
from spinbench.inference import registry
from spinbench.models import families, loading, specs
from spinbench.sweeping import cellconfigs, composition, hydra_errors, settings_checks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from spinbench.sweeping.arguments import Arguments

# Time limit in seconds for imports and drivers of all backends on a GPU.
DEVICE_SECONDS = 60.0
# Time limit in seconds per model.
EACH = 1.0
# Time limit in seconds for all models.
ALL = 3.0
# Time limit in seconds for composing their configurations.
COMPOSING = 0.5
# Largest number of combinations of values that are all tried; with more, each value is tried in a few.
PRODUCT = 64
# Combinations per value in that case.
BESIDE = 8

Spec = dict[str, Any]
# NAME=VALUE of each key that models depend on and that has several values.
Choice = tuple[str, ...]


def check(plan: composition.Plan) -> None:
    """Refuse each value with which no model can be made, whatever it is combined with.

    A combination of values that are fine beside others costs its own cells alone.

    Raises:
        SpinbenchError: what the models' families or files say, one sentence a value.
    """
    trials = list(_trials(plan))
    distinct = {_text(spec): spec for _, spec in trials}
    _remark_unread_evidence(distinct.values())
    reasons = dict(zip(distinct, refusals_of([*distinct.values()]), strict=True))
    outcomes = [(choice, reasons[_text(spec)]) for choice, spec in trials]
    refused = settings_checks.Refusals()
    if sentence := _unanimous([outcome for _, outcome in outcomes]):
        refused.add(ModelError(sentence))
        refused.raise_if_any()
    for value in dict.fromkeys(itertools.chain.from_iterable(choice for choice, _ in outcomes)):
        if sentence := _unanimous([outcome for choice, outcome in outcomes if value in choice]):
            refused.add(ModelError(sentence))
    refused.raise_if_any()


def check_files(arguments: Arguments, config: DictConfig) -> None:
    """Refuse a sweep whose cells' models or evidence are not there; a plan is made without them, too, as of a command
    on a page.

    Raises:
        SpinbenchError: what is not there, one sentence a file.
    """
    if config.model.name != families.FILE:
        return
    refused = settings_checks.Refusals()
    # What a name refers to, as ${seed}, has the first cell's value here.
    first = copy.deepcopy(config)
    for name in ("path", "evidence"):
        lines = composition.choices(arguments.of_cells, f"model.{name}")
        for value in [cellconfigs.value_of(line) for line in lines] or [config.model.get(name)]:
            with refused.collect(), hydra_errors.explain_errors():
                first.model[name] = value
                path = first.model[name]
                # A record's settings would refer to others where they are read again.
                if isinstance(path, str) and "${" in path:
                    raise SpinbenchError(f"{path}: the name of a sweep's file holds no '${{'; rename it")
                if isinstance(path, str) and not (name == "evidence" and is_assignment(path)):
                    loading.check_model_exists(path)
    refused.raise_if_any()


def check_device(plan: composition.Plan) -> None:
    """Refuse a sweep on device=gpu where none of its backends finds one, before each of its cells says so.

    Raises:
        SpinbenchError: what the first of them says.
    """
    if plan.config.backend.get("device") != "gpu":
        return
    lines = plan.choices.get("backend") or [f"backend={plan.config.backend.name}"]
    names, refusals = [str(cellconfigs.value_of(line)) for line in lines], list[str]()
    with (
        contextlib.suppress(OverdueError, DiedError),
        contextlib.closing(run_in_child(_find_devices, names, DEVICE_SECONDS)) as outcomes,  # type: ignore[type-var]
    ):
        refusals = [sentence for sentence in outcomes if sentence]
    if len(refusals) == len(names):
        raise SpinbenchError(f"nothing can be measured here: {refusals[0]}")


def _find_devices(names: Sequence[str]) -> Iterator[str]:
    """Why each of these backends has no GPU, in the process aside; empty: it has one, or its cells tell what fails."""
    for name in names:
        sentence = ""
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            try:
                registry.backend_class(name)(device="gpu")
            except (SpinbenchError, ImportError) as error:
                sentence = str(error)
            except Exception:
                pass  # of a driver or a plugin: its cells record it, each with its traceback
        yield sentence


def _remark_unread_evidence(configs: Iterable[Spec]) -> None:
    for path in dict.fromkeys(spec["path"] for spec in configs if spec.get("path") and not spec.get("evidence")):
        if Path(f"{path}.evid").is_file():
            remark(f"{path}.evid is there and is not read; model.evidence={path}.evid observes what it says")


def refusals_of(configs: Sequence[Spec]) -> list[str | None]:
    """Why each model cannot be made; empty if it can be, None if there was no time to tell."""
    reasons: list[str | None] = []
    until = time.perf_counter() + ALL
    while len(reasons) < len(configs) and (left := until - time.perf_counter()) > 0:
        since = time.perf_counter()
        with (
            contextlib.suppress(OverdueError, DiedError),
            contextlib.closing(run_in_child(_build_models, configs[len(reasons) :], left)) as outcomes,  # type: ignore[type-var]
        ):
            for news in outcomes:
                if news is not None:
                    reasons.append(news)
                    since = time.perf_counter()
                elif time.perf_counter() - since > EACH:
                    break
            else:
                break
        reasons.append(None)
    return [*reasons, *[None] * (len(configs) - len(reasons))]


def _build_models(configs: Sequence[Spec]) -> Iterator[str]:
    """The same, in the process aside; other errors than refusals are for the cells to tell, with their traceback."""
    for spec in configs:
        sentence = ""
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            try:
                specs.build(spec)
            except (ModelError, UnknownNameError) as error:
                sentence = str(error)
            except Exception:
                pass  # of a driver or a plugin: its cells record it, each with its traceback
        yield sentence


def _unanimous(outcomes: Sequence[str | None]) -> str | None:
    """The first of some sentences, if there are no other outcomes."""
    return outcomes[0] if outcomes and all(outcomes) else None


def _trials(plan: composition.Plan) -> Iterator[tuple[Choice, Spec]]:
    """Models of the sweep, with the values that they have: all, or a few with each value."""
    groups = {*plan.config.hydra.runtime.choices}
    # The remaining keys are settings of models and of experiments.
    others = {*settings_checks.CHECKS, *groups, "hydra"} - {"model"}
    keys = [key for key in plan.choices if key.lstrip("+").partition(".")[0] not in others]
    varied = {key: plan.choices[key] for key in keys if len(plan.choices[key]) > 1}
    first = {key: options[0] for key, options in plan.choices.items()}
    until = time.perf_counter() + COMPOSING
    bases: dict[str, DictConfig] = {}
    with searchpath.initialize():
        for choice in _choices([*varied.values()]):
            if cellconfigs.is_excluded(choice, plan.left_out):
                continue
            if bases and time.perf_counter() > until:
                return
            lines = {**first, **dict(zip(varied, choice, strict=True))}
            with contextlib.suppress(SpinbenchError), hydra_errors.explain_errors():  # the plan tells
                member = lines.get("model", "")
                if member not in bases:
                    bases[member] = cellconfigs.without_hydra(hydra_errors.compose_first_cell([*lines.values()]))
                settings = [line for key, line in lines.items() if key in varied and key not in groups]
                model = cellconfigs.with_values(bases[member], settings).model
                yield choice, OmegaConf.to_container(model, resolve=True, throw_on_missing=True)  # type: ignore[misc]


def _choices(options: Sequence[Sequence[str]]) -> Iterable[Choice]:
    """Combinations, at first those that differ from the first one in a single value."""
    first = tuple(values[0] for values in options)
    beside = [
        (*first[:place], value, *first[place + 1 :]) for place, values in enumerate(options) for value in values[1:]
    ]
    others: Iterable[Choice] = itertools.product(*options)
    if math.prod(map(len, options)) > PRODUCT:
        rng = random.Random(0)  # a fixed seed: the same combinations each time
        count = BESIDE * max(map(len, options))
        repeated = [[*itertools.islice(itertools.cycle(values), count)] for values in options]
        others = zip(*(rng.sample(values, count) for values in repeated), strict=True)
    return dict.fromkeys([first, *beside, *others])


def _text(spec: Mapping[str, object]) -> str:
    return json.dumps(spec, sort_keys=True, default=str)

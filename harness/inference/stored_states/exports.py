"""Answers as files hold them, and stored states as ArviZ and dimod take them; both libraries are optional."""

from __future__ import annotations

import csv
import io
from collections.abc import Hashable, Mapping
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spinbench.errors import SpinbenchError, UnavailableError
from spinbench.foundation.remarks import escape_row
from spinbench.inference.stored_states.storage import UnsignedArray
from spinbench.mathematics import all_states
from spinbench.models import Model
from spinbench.models.convert import original_log_weights
from spinbench.models.files.uai import format_mar, format_mpe, format_pr

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from spinbench.api.host_arrays import PerVariable
    from spinbench.inference.result import Result

# Suffixes of files that hold an answer.
SUFFIXES = (".MAR", ".PR", ".MPE", ".csv", ".order")
# Name of the variables' dimension in ArviZ, which uses "variable" itself in summaries.
NODE = "node"


def to_inference_data(
    model: Model, states: UnsignedArray, attributes: Mapping[str, object], diagnostics: Mapping[str, PerVariable]
) -> Any:
    """See `Result.to_arviz`.

    Args:
        model: that was given to `run`.
        states: (C, S, M) of its variables.
        attributes: of the posterior.
        diagnostics: in the layout of marginals.

    Raises:
        UnavailableError: arviz is not installed.
    """
    arviz = _load("arviz", "arviz")
    names = [label if isinstance(label, str | int) else str(label) for label in variable_labels(model)]
    groups = {"posterior": {"x": states}, "sample_stats": {"lp": log_weights(model, states)}}
    how: dict[str, object] = {"coords": {NODE: names}, "dims": {"x": [NODE]}}
    if "posterior" in signature(arviz.from_dict).parameters:  # ArviZ before version 1
        data = arviz.from_dict(**groups, **how, posterior_attrs=dict(attributes))
    else:
        data = arviz.from_dict(groups, **how, attrs={"posterior": dict(attributes)})
    stats, array = data["sample_stats"], import_module("xarray").DataArray
    # from_dict only takes arrays over chains and draws.
    for name, values in diagnostics.items():
        table = _pad(values)
        stats[name] = array(table, {NODE: names}, [NODE, "state"][: table.ndim])
    return data


def to_sample_set(model: Model, states: UnsignedArray, info: Mapping[str, object]) -> Any:
    """See `Result.to_sampleset`; arguments and errors as of `to_inference_data`."""
    dimod = _load("dimod", "bqm")
    kind = "INTEGER"
    if max((model.origin or model).cardinalities, default=2) <= 2:
        kind = "BINARY"
    samples, energy = states.reshape(-1, states.shape[-1]), -log_weights(model, states).ravel()
    return dimod.SampleSet.from_samples((samples, variable_labels(model)), kind, energy=energy, info=dict(info))


def variable_labels(model: Model) -> list[Hashable]:
    """(M,) names of the variables that the user gave; 0, …, M - 1 where they have none."""
    original = model.origin or model
    return list(original.labels) or list(range(len(original.cardinalities)))


def log_weights(model: Model, states: np.ndarray) -> npt.NDArray[np.float64]:
    """(…,) log p* of states (…, M) of the variables that the user gave, of the model with its evidence."""
    return original_log_weights(model, lower_states(model, states))


def lower_states(model: Model, states: np.ndarray) -> npt.NDArray[np.int64]:
    """States (…, N) of a model, of states (…, M) of the variables that the user gave."""
    if model.origin is None:
        return np.asarray(states, dtype=np.int64)
    return model.origin.lower(states)


def lift_states(model: Model, states: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """States (S, M) of the variables that the user gave, of states (S, N) of a model."""
    if model.origin is None:
        return states
    return model.origin.lift(states)


def _pad(values: PerVariable) -> npt.NDArray[np.float64]:
    """(M,) of binary variables, else (M, K), NaN beyond the states of a variable."""
    if not isinstance(values, list):
        return np.asarray(values, dtype=np.float64)
    table = np.full((len(values), max(map(len, values), default=0)), np.nan)
    for row, numbers in zip(table, values, strict=True):
        row[: len(numbers)] = numbers
    return table


def _load(package: str, extra: str) -> ModuleType:
    if find_spec(package) is None:
        raise UnavailableError(f"{package} is not installed; pip install 'spinbench[{extra}]'")
    return import_module(package)


def encode(result: Result, path: Path) -> bytes:
    """An answer as files of this suffix hold it; errors as of `Result.save`."""
    match path.suffix.lower():
        case ".mar":
            if result.marginals is None:
                raise SpinbenchError(f"{result.method} gives no marginals")
            return format_mar(all_states.by_variable(result.marginals))
        case ".pr":
            if result.log_z is None:
                raise SpinbenchError(f"{result.method} gives no log Z")
            return format_pr(float(result.log_z))
        case ".mpe":
            if result.best_state is None:
                raise SpinbenchError(f"{result.method} found no state of positive weight")
            return format_mpe(result.best_state)
        case ".order":
            if result.order is None:
                raise SpinbenchError(f"{path}: there is no order, since nothing was eliminated")
            return f"{' '.join(map(str, result.order))}\n".encode()
        case ".csv":
            text = io.StringIO()
            writer, columns = csv.writer(text), result.columns()
            writer.writerow(columns)
            lines = zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True)
            writer.writerows(escape_row(list(line)) for line in lines)
            return text.getvalue().encode()
        case suffix:
            raise SpinbenchError(f"{path} was given, of suffix {suffix!r}; {', '.join(SUFFIXES)} are allowed")

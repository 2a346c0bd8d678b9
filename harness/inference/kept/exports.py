"""Kept states as ArviZ and dimod take them; both libraries are optional."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.errors import UnavailableError
from spinbench.models import Model
from spinbench.models.convert import log_weights_as_given

NODE = "node"
"""The dimension of variables to ArviZ, which has a "variable" of its own in summaries."""


@dataclass(frozen=True, eq=False)
class Kept:
    """States that a run kept.

    Attributes:
        model: that was given to `run`.
        states: (C, S, M) of the variables that the user gave: the model's, or those that it was derived from.
    """

    model: Model
    states: npt.NDArray[np.unsignedinteger[Any]]

    @property
    def labels(self) -> list[Hashable]:
        """(M,) of the variables."""
        return labels_of(self.model)

    def inference_data(self, about: Mapping[str, Any], diagnostics: Mapping[str, Any]) -> Any:
        """See `Result.to_arviz`; `diagnostics` are in the layout of marginals."""
        arviz = _loaded("arviz", "arviz")
        names = [label if isinstance(label, str | int) else str(label) for label in self.labels]
        groups = {"posterior": {"x": self.states}, "sample_stats": {"lp": self._log_weights()}}
        how: dict[str, Any] = {"coords": {NODE: names}, "dims": {"x": [NODE]}}
        if "posterior" in signature(arviz.from_dict).parameters:  # before version 1
            found = arviz.from_dict(**groups, **how, posterior_attrs=dict(about))
        else:
            found = arviz.from_dict(groups, **how, attrs={"posterior": dict(about)})
        stats, array = found["sample_stats"], import_module("xarray").DataArray
        for name, values in diagnostics.items():  # from_dict takes only what chains and draws have
            table = _table(values)
            stats[name] = array(table, {NODE: names}, [NODE, "state"][: table.ndim])
        return found

    def sample_set(self, about: Mapping[str, Any]) -> Any:
        """See `Result.to_sampleset`."""
        dimod = _loaded("dimod", "bqm")
        origin = self.model.origin
        cardinalities = self.model.cardinalities if origin is None else origin.cardinalities
        samples = self.states.reshape(-1, self.states.shape[-1])
        kind = "BINARY" if max(cardinalities, default=2) <= 2 else "INTEGER"
        energy = -self._log_weights().ravel()
        return dimod.SampleSet.from_samples((samples, self.labels), kind, energy=energy, info=dict(about))

    def _log_weights(self) -> npt.NDArray[np.float64]:
        """(C, S) log p*, of the model with its evidence."""
        origin = self.model.origin
        return log_weights_as_given(self.model, self.states if origin is None else origin.lower(self.states))


def labels_of(model: Model) -> list[Hashable]:
    """(M,) names of the variables that the user gave; 0, …, M - 1 where they have none."""
    named = model if model.origin is None else model.origin
    return list(named.labels) or list(range(len(named.cardinalities)))


def _table(values: Any) -> npt.NDArray[np.float64]:
    """(M,) of binary variables, else (M, K), NaN beyond the states of a variable."""
    if not isinstance(values, list):
        return np.asarray(values, dtype=np.float64)
    table = np.full((len(values), max(map(len, values), default=0)), np.nan)
    for row, numbers in zip(table, values, strict=True):
        row[: len(numbers)] = numbers
    return table


def _loaded(package: str, extra: str) -> Any:
    if find_spec(package) is None:
        raise UnavailableError(f"{package} is not installed; pip install 'spinbench[{extra}]'")
    return import_module(package)

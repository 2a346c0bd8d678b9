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
        """(M,) names of the variables; 0, …, M - 1 where they have none."""
        named = self.model.labels if self.model.origin is None else self.model.origin.labels
        return list(named) or list(range(self.states.shape[-1]))

    def inference_data(self, about: Mapping[str, Any]) -> Any:
        """See `Result.to_arviz`."""
        arviz = _loaded("arviz", "arviz")
        names = [label if isinstance(label, str | int) else str(label) for label in self.labels]
        groups = {"posterior": {"x": self.states}, "sample_stats": {"lp": self._log_weights()}}
        how: dict[str, Any] = {"coords": {"variable": names}, "dims": {"x": ["variable"]}}
        if "posterior" in signature(arviz.from_dict).parameters:  # before version 1
            return arviz.from_dict(**groups, **how, posterior_attrs=dict(about))
        return arviz.from_dict(groups, **how, attrs={"posterior": dict(about)})

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
        return self.model.log_weight(self.states if origin is None else origin.lower(self.states))


def _loaded(package: str, extra: str) -> Any:
    if find_spec(package) is None:
        raise UnavailableError(f"{package} is not installed; pip install 'spinbench[{extra}]'")
    return import_module(package)

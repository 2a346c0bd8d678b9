"""A plugin that needs host tables, models and diagnostics: Gibbs sampling, the variables of a colour at a time."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spinbench.api import (
    Estimate,
    Method,
    PairwiseModel,
    Program,
    effective_sample_size,
    family,
    split_r_hat,
    standard_error,
    sweeps,
)
from spinbench.errors import UnsupportedError


class Tables(NamedTuple):
    biases: np.ndarray
    weights: np.ndarray
    colours: np.ndarray


@dataclass(frozen=True)
class Colours(Method):
    name = "colours"
    summary = "Gibbs sampling by colours"

    @property
    def reductions(self):
        return {"s": "sum"}

    def plan(self, model):
        if model.groups:
            raise UnsupportedError(f"{model.name}: method colours knows no groups")
        colour = sweeps.colouring(model.num_variables, model.edges)
        return Tables(model.biases, model.dense(), np.eye(colour.max() + 1)[:, colour])

    def program(self, backend):
        xp = backend.xp

        def step(key, tables, s):
            def one(k, s):
                u = backend.uniform(backend.fold_in(key, k), s.shape)
                on = u < 0.5 + 0.5 * backend.xp.tanh(0.5 * (tables.biases[:, None] + tables.weights @ s))
                return xp.where(tables.colours[k][:, None] > 0, xp.astype(on, backend.real), s)

            return backend.fori_loop(0, tables.colours.shape[0], one, s)

        return Program(lambda key, tables, start: start, step, lambda tables, s: {"s": s})

    def estimate(self, model, tables, trace):
        series = trace.series("s")
        marginals, errors = trace.mean("s").mean(axis=-1), standard_error(series)
        return Estimate(
            marginals=marginals,
            marginals_se=errors,
            ess=effective_sample_size(marginals, errors, trace.samples * series.shape[-1]),
            r_hat=split_r_hat(series),
        )


@family
def star(leaves: int, field: float = 0.5, sign: str = "plus") -> PairwiseModel:
    """One hub."""
    coupling = 1.0 if sign == "plus" else -1.0
    edges = [(0, leaf) for leaf in range(1, leaves + 1)]
    return PairwiseModel.from_edges([field] * (leaves + 1), edges, [coupling] * leaves, name="star")

"""Bayesian networks with seeds, of which little is observed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.foundation.parameters import family
from spinbench.models.evidence import condition
from spinbench.models.factor_graph import FactorGraph

FloatArray = npt.NDArray[np.float64]

MAX_ENTRIES = 50_000_000


@family
def bayesian_network(
    layers: int = 4,
    width: int = 100,
    parents: int = 2,
    determinism: float = 0.3,
    states: int = 2,
    observed: int = 5,
    seed: int = 0,
) -> FactorGraph:
    """Random layered network p(x) = Π p(x_v | x_parents) under evidence, Z the evidence's probability.

    Each variable has `parents` parents in the layer above, all sets as likely, and a table over them and itself, in
    this order: a share `determinism` of the tables are random functions of the parents, the others' rows are uniform on
    the simplex. Of the last layer, `observed` variables are observed, in the states of a draw from the network. All
    that is no ancestor of these sums out ("barren": Shachter, "Evaluating influence diagrams", Operations Research
    1986), so that `spinbench.models.simplify` has much to do.

    Variables are numbered by layers. For each layer the generator gives the parents of its variables, then for each
    variable a uniform number (a function, if it is below `determinism`), the table, and its state; those of the first
    layer have neither parents nor that number.
    """
    name = "bayesian_network"
    for key, value in (("layers", layers), ("width", width), ("states", states)):
        _require(value >= 1, f"{key} = {value}; it must be 1 or more")
    _require(0 <= parents <= width, f"parents = {parents} and width = {width}; 0 <= parents <= width is needed")
    _require(0 <= determinism <= 1, f"determinism = {determinism}; it must be from 0 to 1")
    _require(0 <= observed <= width, f"observed = {observed} and width = {width}; 0 <= observed <= width is needed")
    _require(seed >= 0, f"seed = {seed}; it must be 0 or more")
    entries = layers * width * float(states) ** (parents + 1)
    _require(
        entries <= MAX_ENTRIES, f"the tables would have {entries:,.0f} entries; at most {MAX_ENTRIES:,} are allowed"
    )
    rng = np.random.Generator(np.random.PCG64(seed))
    factors: list[tuple[tuple[int, ...], FloatArray]] = []
    drawn: list[int] = []
    for layer in range(layers):
        above = np.arange(width) + (layer - 1) * width
        chosen = [np.sort(rng.choice(above, parents, replace=False)) if layer else above[:0] for _ in range(width)]
        for k, given in enumerate(chosen):
            deterministic = bool(layer) and rng.random() < determinism
            table = _table(rng, (states,) * (len(given) + 1), deterministic=deterministic)
            row = table[tuple(drawn[u] for u in given)]
            drawn.append(min(int(np.searchsorted(np.cumsum(row), rng.random(), side="right")), states - 1))
            factors.append(((*given.tolist(), layer * width + k), table))
    model = FactorGraph.from_tables([states] * (layers * width), factors, name=name)
    last = (layers - 1) * width + np.sort(rng.choice(width, observed, replace=False))
    return condition(model, {v: drawn[v] for v in last.tolist()})


def _table(rng: np.random.Generator, shape: tuple[int, ...], *, deterministic: bool) -> FloatArray:
    """p(x_v | parents), v last."""
    if deterministic:
        return np.asarray(np.eye(shape[-1])[rng.integers(shape[-1], size=shape[:-1])])
    weights = rng.standard_exponential(shape)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ModelError(f"model 'bayesian_network': {message}")

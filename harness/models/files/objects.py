"""Objects of pgmpy (discrete Bayesian and Markov networks, factor graphs, cluster graphs and junction trees), pyAgrum
(Bayesian networks, Markov random fields) and scikit-learn (restricted Boltzmann machines), none of which is imported.

Most of pgmpy's are NetworkX graphs, too, whose edges carry no numbers: the factors are the model.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.checks import check_labels, to_float_array
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.lattices import bipartite_edges
from spinbench.models.pairwise import PairwiseModel

_NETWORKS = frozenset({"DiscreteBayesianNetwork", "DiscreteMarkovNetwork", "BayesianNetwork", "MarkovNetwork"})
_FACTOR_GRAPHS = frozenset({"FactorGraph"})
_CLUSTER_GRAPHS = frozenset({"ClusterGraph"})


def is_object_of(package: str, source: object) -> bool:
    """Whether the object's class, or one that it is derived from, is the package's."""
    return any(cls.__module__.partition(".")[0] == package for cls in type(source).__mro__)


def from_pgmpy(source: Any, *, name: str | None = None) -> FactorGraph:
    """The product of an object's factors, or of its conditional distributions; variables become labels.

    States are numbered as in pgmpy's tables.

    Raises:
        ModelError: an object that is none of the module's, a variable without a factor, or factors that disagree about
            the states of a variable.
    """
    kind, name = type(source).__name__, name or str(getattr(source, "name", "") or "pgmpy")
    classes = {cls.__name__ for cls in type(source).__mro__}
    if not classes & (_NETWORKS | _FACTOR_GRAPHS | _CLUSTER_GRAPHS) or "DynamicBayesianNetwork" in classes:
        raise ModelError(
            f"{name}: a model cannot be made of pgmpy's {kind}; discrete Bayesian and Markov networks, factor graphs, "
            "cluster graphs and junction trees can"
        )
    get_factors = getattr(source, "get_cpds", None) or source.get_factors
    factors = [factor for factor in get_factors() if factor is not None]
    states: dict[Hashable, tuple[Hashable, ...]] = {}
    for factor in factors:
        for variable, size in zip(factor.variables, np.shape(factor.values), strict=True):
            names = tuple((getattr(factor, "state_names", None) or {}).get(variable, range(size)))
            if states.setdefault(variable, names) != names:
                raise ModelError(
                    f"{name}: factors disagree about the states of {variable!r}: {list(states[variable])} and "
                    f"{list(names)}, in this order"
                )
    variables = _list_variables(source, classes)
    if lacking := [variable for variable in variables if variable not in states]:
        raise ModelError(f"{name}: variable {lacking[0]!r} has no factor, so that the number of its states is unknown")
    index = {variable: v for v, variable in enumerate(dict.fromkeys([*variables, *states]))}
    return FactorGraph.from_tables(
        [len(states[variable]) for variable in index],
        [([index[v] for v in factor.variables], np.asarray(factor.values, dtype=np.float64)) for factor in factors],
        name=name,
        labels=tuple(index),
        state_names=states if check_labels(name, tuple(index), len(index)) else {},
    )


def _list_variables(source: Any, class_names: set[str]) -> list[Hashable]:
    """In the object's order.

    Nodes of a cluster graph are groups of variables. Those of a factor graph are factors, too, or names of factors: a
    node there that no factor names is a variable only if it has no neighbours.
    """
    if class_names & _CLUSTER_GRAPHS:
        return [variable for cluster in source.nodes for variable in cluster]
    if class_names & _FACTOR_GRAPHS:
        named = {variable for factor in source.get_factors() for variable in factor.variables}
        nodes = [node for node in source.nodes if not hasattr(node, "values")]
        return [node for node in nodes if node in named or not source.degree(node)]
    return list(source.nodes)


def from_pyagrum(source: Any, *, name: str | None = None) -> FactorGraph:
    """The product of an object's factors, or of its conditional distributions; variables become labels.

    Raises:
        ModelError: neither a Bayesian network nor a Markov random field, or a negative number.
    """
    classes = {cls.__name__ for cls in type(source).__mro__}
    if "BayesNet" in classes:
        tensors = [source.cpt(node) for node in source.nodes()]
    elif "MarkovRandomField" in classes:
        tensors = [source.factor(scope) for scope in source.factors()]
    else:
        raise ModelError(
            f"{name or 'pyagrum'}: a model cannot be made of pyAgrum's {type(source).__name__}; BayesNet and "
            "MarkovRandomField can"
        )
    variables = {v.name(): tuple(v.labels()) for v in map(source.variable, sorted(source.nodes()))}
    index = {variable: v for v, variable in enumerate(variables)}
    return FactorGraph.from_tables(
        [len(labels) for labels in variables.values()],
        [([index[v] for v in tensor.names], tensor.toarray().T) for tensor in tensors],  # the last variable comes first
        name=name or source.propertyWithDefault("name", "") or "pyagrum",
        labels=tuple(variables),
        state_names=variables,
    )


def build_rbm(
    visible_biases: npt.ArrayLike,
    hidden_biases: npt.ArrayLike,
    weights: npt.ArrayLike,
    *,
    log_constant: float = 0.0,
    name: str,
    labels: Sequence[Hashable] = (),
) -> PairwiseModel:
    """p(v, h) ∝ exp(Σ b v + Σ c h + Σ v W h) of biases (V,) and (H,) and weights (V, H), the visible units first.

    Raises:
        ModelError: other shapes, or numbers that are not finite.
    """
    visible, hidden = (to_float_array(name, "biases", biases) for biases in (visible_biases, hidden_biases))
    weights = to_float_array(name, "weights", weights)
    if visible.ndim != 1 or hidden.ndim != 1 or weights.shape != (len(visible), len(hidden)):
        raise ModelError(
            f"{name}: weights have shape {weights.shape}, and biases {visible.shape} and {hidden.shape}; (V, H), (V,) "
            "and (H,) are needed"
        )
    biases, edges = np.concatenate([visible, hidden]), bipartite_edges(*weights.shape)
    return PairwiseModel.from_edges(biases, edges, weights.ravel(), log_constant=log_constant, name=name, labels=labels)


def from_sklearn(machine: Any, *, name: str) -> PairwiseModel:
    """Of a fitted `sklearn.neural_network.BernoulliRBM`; names of its features become labels.

    Raises:
        ModelError: weights that are not finite.
    """
    features = getattr(machine, "feature_names_in_", ())
    return build_rbm(
        machine.intercept_visible_,
        machine.intercept_hidden_,
        np.transpose(machine.components_),
        name=name,
        labels=[*features, *machine.get_feature_names_out()] if len(features) else (),
    )

"""Objects of pgmpy and pyAgrum: the product of their factors, names, and sentences for the rest."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest

from spinbench.errors import ModelError
from spinbench.models import load


class DiscreteFactor:
    """As pgmpy's, of whose objects these have what is read."""

    def __init__(self, variables, values, states=None):
        self.variables, self.values, self.state_names = list(variables), np.array(values, dtype=float), states or {}


def of_pgmpy(name, nodes, factors, edges=(), base=networkx.Graph):
    kind = type(name, (base,), {"__module__": f"pgmpy.models.{name}"})
    setattr(kind, "get_cpds" if base is networkx.DiGraph else "get_factors", lambda self: factors)
    graph = kind()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    return graph


PAIR, ONE = DiscreteFactor("ab", [[1, 2, 3], [3, 4, 5]]), DiscreteFactor("a", [2, 1])


@pytest.mark.parametrize(
    "source",
    [
        of_pgmpy("DiscreteMarkovNetwork", "ab", [PAIR, ONE], [("a", "b")]),
        of_pgmpy("DiscreteMarkovNetwork", "ab", [PAIR, ONE]),
        of_pgmpy("FactorGraph", ["a", "b", PAIR, ONE], [PAIR, ONE], [("a", PAIR), ("b", PAIR), ("a", ONE)]),
        of_pgmpy("FactorGraph", ["a", "b", "phi_a_b"], [PAIR, ONE], [("a", "phi_a_b"), ("b", "phi_a_b")]),
        of_pgmpy("JunctionTree", [("a", "b")], [PAIR, ONE], base=type("ClusterGraph", (networkx.Graph,), {})),
        of_pgmpy("DiscreteBayesianNetwork", "ab", [ONE, PAIR], [("a", "b")], networkx.DiGraph),
    ],
    ids=lambda source: f"{type(source).__name__} of {len(source.edges)} edges",
)
def test_objects_of_pgmpy_are_the_product_of_their_factors(source):
    model = load(source)
    assert (model.labels, model.cardinalities) == (("a", "b"), (2, 3))
    np.testing.assert_allclose(np.exp(model.log_weight(np.argwhere(np.ones((2, 3))))), [2, 4, 6, 3, 4, 5])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (of_pgmpy("DiscreteMarkovNetwork", "abc", [PAIR]), "variable 'c' has no factor"),
        (of_pgmpy("FactorGraph", ["a", "b", "c", PAIR], [PAIR]), "variable 'c' has no factor"),
        (
            of_pgmpy("LinearGaussianBayesianNetwork", "ab", []),
            "cannot be made of pgmpy's LinearGaussianBayesianNetwork",
        ),
        (
            of_pgmpy(
                "MarkovNetwork",
                "ab",
                [DiscreteFactor("a", [1, 2], {"a": ["x", "y"]}), DiscreteFactor("a", [1, 2], {"a": ["y", "x"]})],
            ),
            "factors disagree about the states of 'a': ['x', 'y'] and ['y', 'x']",
        ),
    ],
)
def test_objects_of_pgmpy_that_are_no_models(source, message):
    with pytest.raises(ModelError) as info:
        load(source)
    assert message in str(info.value)


class Tensor:
    """As pyAgrum's, whose arrays have the last variable first."""

    def __init__(self, names: str, values: list[Any]):
        self.names, self.values = tuple(names), np.array(values, dtype=float)

    def toarray(self):
        return self.values.T


class Variable:
    def __init__(self, name: str, labels: str):
        self.name, self.labels = lambda: name, lambda: tuple(labels)


def of_pyagrum(kind: str, **members: Any) -> Any:
    """Variables a of 2 and b of 3 states."""
    variables = {
        "variable": lambda _, node: [Variable("a", "no"), Variable("b", "xyz")][node],
        "nodes": lambda _: {0, 1},
    }
    named = {"propertyWithDefault": lambda _, name, default: default, "__module__": "pyagrum.pyagrumcpp"}
    return type(kind, (), variables | named | members)()


TENSORS = [Tensor("a", [2, 1]), Tensor("ba", [[1, 3], [2, 4], [3, 5]])]
NETWORK = of_pyagrum("BayesNet", cpt=lambda _, node: TENSORS[node])


@pytest.mark.parametrize(
    "source",
    [
        NETWORK,
        type("MyNetwork", (type(NETWORK),), {})(),
        of_pyagrum(
            "MarkovRandomField", factors=lambda _: [{0}, {0, 1}], factor=lambda _, scope: TENSORS[len(scope) - 1]
        ),
    ],
    ids=lambda source: type(source).__name__,
)
def test_objects_of_pyagrum_are_the_product_of_their_factors(source):
    model = load(source)
    assert (model.labels, model.state_names) == (("a", "b"), {"a": ("n", "o"), "b": ("x", "y", "z")})
    np.testing.assert_allclose(np.exp(model.log_weight(np.argwhere(np.ones((2, 3))))), [2, 4, 6, 3, 4, 5])


def test_a_diagram_of_pyagrum_is_no_model():
    with pytest.raises(ModelError, match="cannot be made of pyAgrum's InfluenceDiagram"):
        load(of_pyagrum("InfluenceDiagram"))

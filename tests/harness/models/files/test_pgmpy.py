"""Objects of pgmpy, which need not be installed: what is read of them."""

from __future__ import annotations

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

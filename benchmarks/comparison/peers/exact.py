"""Exact solvers of discrete factor graphs: pyGMs, pyAgrum, pgmpy.

Each call finds an elimination order, propagates, and reads log Z and all single-variable marginals; building the
library's own model object is timed apart.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from comparison.answers import Answer
from comparison.contender import Contender, need
from comparison.problems import Model
from spinbench.backends.peers.tables import Tables, tables


def _contender(library: str, distribution: str, model: Model, build: Callable[[Tables], Any], call: Any) -> Contender:
    given = tables(model)
    since = time.process_time()
    built = build(given)
    seconds = time.process_time() - since
    return Contender(
        library=library,
        distribution=distribution,
        precision="float64",
        asked="log Z and all marginals, order included",
        work=1.0,
        prepare=lambda number: given,
        call=lambda given: call(built, given),
        answer=lambda answer: answer,
        build_seconds=seconds,
    )


def _answer(found: list[Any], log_z: float | None) -> Answer:
    normal = [np.asarray(table, dtype=np.float64) / np.sum(table) for table in found]
    return Answer(np.concatenate(normal), log_z)


def pygms(model: Model) -> Contender:
    """The junction tree of `wmb`, over a min-fill order. Zeros in tables give it NaN: such models are not asked."""
    need("pygms", "pyGMs")
    import pygms as library
    from pygms import wmb

    def build(given: Tables) -> Any:
        variables = [library.Var(i, size) for i, size in enumerate(given.sizes)]
        factors = [
            library.Factor([variables[v] for v in scope], table)
            for scope, table in zip(given.scopes, given.tables, strict=True)
        ]
        return variables, library.GraphModel(factors)

    def call(built: Any, given: Tables) -> Answer:
        variables, graph = built
        order = library.eliminationOrder(graph, "minfill")[0]
        tree = wmb.JTree(graph, elimOrder=order)
        log_z = float(tree.msgForward()) + given.scale
        scopes = [library.VarSet([variable]) for variable in variables]
        found = tree.beliefs(scopes)
        return _answer([found[scope].t for scope in scopes], log_z)

    return _contender("pyGMs", "pyGMs", model, build, call)


def pyagrum(model: Model) -> Contender:
    """Shafer-Shenoy inference on a Markov random field, one thread; it gives marginals, and no log Z."""
    need("pyagrum", "pyAgrum")
    import pyagrum as library

    library.setNumberOfThreads(1)

    def build(given: Tables) -> Any:
        field = library.MarkovRandomField()
        for v, size in enumerate(given.sizes):
            field.add(library.RangeVariable(str(v), "", 0, size - 1))
        for scope, table in zip(given.scopes, given.tables, strict=True):
            factor = field.addFactor([str(v) for v in scope])
            factor[:] = np.ascontiguousarray(table.T)  # its last variable is the first axis
        return field

    def call(field: Any, given: Tables) -> Answer:
        inference = library.ShaferShenoyMRFInference(field)
        inference.makeInference()
        return _answer([inference.posterior(str(v)).toarray() for v in range(len(given.sizes))], None)

    return _contender("pyAgrum", "pyAgrum", model, build, call)


def pgmpy(model: Model) -> Contender:
    """Variable elimination for each marginal, its greedy contraction, as by default; it gives no log Z."""
    need("pgmpy")
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.inference import VariableElimination
    from pgmpy.models import DiscreteMarkovNetwork

    def build(given: Tables) -> Any:
        network = DiscreteMarkovNetwork()
        network.add_nodes_from(str(v) for v in range(len(given.sizes)))
        for scope in given.scopes:
            names = [str(v) for v in scope]
            network.add_edges_from((a, b) for k, a in enumerate(names) for b in names[k + 1 :])
        factors = [
            DiscreteFactor([str(v) for v in scope], table.shape, table)
            for scope, table in zip(given.scopes, given.tables, strict=True)
        ]
        network.add_factors(*factors)
        return network

    def call(network: Any, given: Tables) -> Answer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inference = VariableElimination(network)
            found = [inference.query([str(v)], show_progress=False).values for v in range(len(given.sizes))]
        return _answer(found, None)

    return _contender("pgmpy", "pgmpy", model, build, call)

"""pyGMs: the junction tree of its `wmb`, over a min-fill order."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spinbench.api import Backend, BackendProfile, FactorGraph, Model
from spinbench.backends.peers import library

if TYPE_CHECKING:
    import pygms


class PyGMsBackend(library.LibraryBackend):
    """pyGMs."""

    name = "pygms"
    requires: ClassVar[tuple[str, ...]] = ("pygms",)
    profile = BackendProfile(packages=("pygms",))


class PyGMsExact(library.LibraryAnswer["tuple[list[pygms.Var], pygms.GraphModel, float]"]):
    """log Z and all marginals, the search for an order and the tree included in what is timed."""

    @classmethod
    def takes(cls, backend: Backend, model: Model) -> str:
        zeros = isinstance(model, FactorGraph) and model.has_zeros
        if zeros:
            return f"pygms answers NaN where tables hold zeros, as those of {model.name} do"
        return ""

    def build(self, model: Model) -> tuple[list[pygms.Var], pygms.GraphModel, float]:
        import pygms

        problem = library.build_tables(model)
        variables = [pygms.Var(v, size) for v, size in enumerate(problem.sizes)]
        shaped = zip(problem.scopes, problem.tables, strict=True)
        factors = [pygms.Factor([variables[v] for v in scope], table) for scope, table in shaped]
        return variables, pygms.GraphModel(factors), problem.scale

    def solve(self, built: tuple[list[pygms.Var], pygms.GraphModel, float], seed: int) -> library.Answer:
        import pygms
        from pygms import wmb

        variables, graph, scale = built
        tree = wmb.JTree(graph, elimOrder=pygms.eliminationOrder(graph, "minfill")[0])
        log_z = float(tree.msgForward()) + scale
        scopes = [pygms.VarSet([variable]) for variable in variables]
        beliefs = tree.beliefs(scopes)
        return library.Answer([np.asarray(beliefs[scope].t) for scope in scopes], log_z)

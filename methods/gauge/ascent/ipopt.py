"""G-BP by IPOPT (Wächter and Biegler, 2006), through CasADi: a cross-check of `point_mass`, in the same angles.

Needs the extra `ipopt`. What it returns is verified like any other gauge: on some models IPOPT stops at points that are
not feasible.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from spinbench.errors import UnavailableError
from spinbench.methods.gauge.ascent.objectives import FloatArray
from spinbench.methods.gauge.ascent.point_mass import Stage
from spinbench.models.forney.model import ForneyModel

FLOOR = 1e-10
"""Least value of a gauged entry, tables having 1 as their largest: constraints hold to rounding only."""
LEAST_COSINE = 1e-3
TOLERANCE, ITERATIONS = 1e-8, 3000


def check_available() -> None:
    """Refuses where CasADi is missing.

    Raises:
        UnavailableError: with the command that installs it.
    """
    if importlib.util.find_spec("casadi") is None:
        raise UnavailableError("solver=ipopt needs casadi, not installed here: pip install 'spinbench[ipopt]'")


def maximise(model: ForneyModel) -> Stage:
    """max Σ_a log f_{a,G}(0) subject to f_{a,G} >= 0, from the identity; unverified."""
    import casadi as ca

    theta = ca.SX.sym("theta", 2 * model.num_edges)
    objective: Any = 0
    constraints, lower = [], []
    for edge in range(model.num_edges):
        constraints.append(ca.cos(theta[2 * edge] - theta[2 * edge + 1]))
        lower.append(LEAST_COSINE)
    for group in model.groups:
        for table, own in zip(group.tables, group.own.tolist(), strict=True):
            entries = _gauged(ca, table, own, theta)
            objective -= ca.log(entries[0])
            constraints += entries
            lower += [FLOOR] * len(entries)
    problem = {"x": theta, "f": objective, "g": ca.vertcat(*constraints)}
    quiet: dict[str, Any] = {
        "print_level": 0,
        "sb": "yes",
        "max_iter": ITERATIONS,
        "tol": TOLERANCE,
        "bound_relax_factor": 0.0,
    }
    options: dict[str, Any] = {"print_time": False, "ipopt": quiet}
    solver = ca.nlpsol("g_bp", "ipopt", problem, options)
    found = solver(x0=np.zeros(2 * model.num_edges), lbg=lower, ubg=ca.inf)
    stats = solver.stats()
    residual = stats["iterations"]["inf_du"][-1]
    return Stage(np.array(found["x"]).ravel(), float(residual), 0.0, "gradient" if stats["success"] else "stalled")


def _gauged(ca: Any, table: FloatArray, own: list[int], theta: Any) -> list[Any]:
    """Symbolic entries of one node's gauged table, in the order of its table."""
    entries: list[Any] = [ca.SX(float(value)) for value in table]
    for k, half in enumerate(own):
        u, v = theta[half], theta[half ^ 1]
        scale = 1.0 / ca.sqrt(ca.cos(u - v))
        bit = 1 << (len(own) - 1 - k)
        fresh = list(entries)
        for x in range(len(entries)):
            if not x & bit:
                zero, one = entries[x], entries[x | bit]
                fresh[x] = scale * (ca.cos(u) * zero + ca.sin(u) * one)
                fresh[x | bit] = scale * (ca.cos(v) * one - ca.sin(v) * zero)
        entries = fresh
    return entries

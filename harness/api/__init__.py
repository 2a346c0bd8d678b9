"""The interface of plugins: everything that methods, backends, kernels, models and formats of others import.

    Method   what to compute: settings, `plan` on the host, a generic `Program`, and `estimate`.
    Program  pure functions over a backend's array namespace: init, step, observe (and warm, adapt for burn-in).
    Backend  where to compute: array namespace, functional random keys, and what has defaults: loops, compilation, …
    Kernel   a native implementation of one (method, backend) pair, in place of the generic program.
    Engine   what the driver sees of either: a program bound to a backend, or a kernel.

Beside these contracts: models, the trace that a method estimates from, errors and diagnostics of Monte Carlo means,
and host tables for programs, by subject: `sweeps`, `messages`, `relaxation`. What is not in `__all__` here, in
`spinbench.testing` or in `spinbench.errors` is not promised to plugins.

Arrays that belong to chains carry the chain axis LAST: states are (N, C), per-chain scalars (C,). With C >= 16
the innermost loop then runs over chains, which is what vector units and compilers want.

The contracts need no array library; what does is imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from spinbench.api.backend import Backend
from spinbench.api.bounds import Bound, BoundRequest, BoundSource, Finding
from spinbench.api.coupling import Coupling
from spinbench.api.estimate import Estimate
from spinbench.api.kernel import Engine, Kernel
from spinbench.api.method import Conformance, Method, Program
from spinbench.api.metric import Measured, Metric
from spinbench.api.old_members import find_old_name
from spinbench.api.profile import BackendProfile, MethodProfile
from spinbench.api.types import Array, Index, Key, LogZKind, Namespace, Precision, Reduction, State, Tables, Tier
from spinbench.foundation.trees import map_arrays

if TYPE_CHECKING:
    from spinbench.api import messages, relaxation, sweeps
    from spinbench.api.host_arrays import States
    from spinbench.api.trace import Trace
    from spinbench.foundation.parameters import family
    from spinbench.mathematics.claims import MarginalClaims, conditional_range, marginal_claims
    from spinbench.mathematics.statistics import effective_sample_size, log_mean, split_r_hat, standard_error
    from spinbench.models import (
        Factor,
        FactorGraph,
        ForneyModel,
        Model,
        Origin,
        PairwiseModel,
        condition,
        to_factor_graph,
        to_forney,
        to_pairwise,
    )
    from spinbench.models.files.format import Format, ModelFile

__all__ = [
    "Array",
    "Backend",
    "BackendProfile",
    "Bound",
    "BoundRequest",
    "BoundSource",
    "Conformance",
    "Coupling",
    "Engine",
    "Estimate",
    "Factor",
    "FactorGraph",
    "Finding",
    "Format",
    "ForneyModel",
    "Index",
    "Kernel",
    "Key",
    "LogZKind",
    "MarginalClaims",
    "Measured",
    "Method",
    "MethodProfile",
    "Metric",
    "Model",
    "ModelFile",
    "Namespace",
    "Origin",
    "PairwiseModel",
    "Precision",
    "Program",
    "Reduction",
    "State",
    "States",
    "Tables",
    "Tier",
    "Trace",
    "condition",
    "conditional_range",
    "effective_sample_size",
    "family",
    "log_mean",
    "map_arrays",
    "marginal_claims",
    "messages",
    "relaxation",
    "split_r_hat",
    "standard_error",
    "sweeps",
    "to_factor_graph",
    "to_forney",
    "to_pairwise",
]

_TABLES = ("messages", "relaxation", "sweeps")
_HOME = {
    "States": "spinbench.api.host_arrays",
    "Trace": "spinbench.api.trace",
    "family": "spinbench.foundation.parameters",
    **dict.fromkeys(("Format", "ModelFile"), "spinbench.models.files.format"),
    **dict.fromkeys(("MarginalClaims", "marginal_claims"), "spinbench.mathematics.claims"),
    "conditional_range": "spinbench.mathematics.claims",
    **dict.fromkeys(
        ("effective_sample_size", "log_mean", "split_r_hat", "standard_error"), "spinbench.mathematics.statistics"
    ),
}


def __getattr__(name: str) -> Any:
    if (old := find_old_name(name)) is not None:
        return old
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _TABLES:
        return importlib.import_module(f"{__name__}.{name}")
    value = globals()[name] = getattr(importlib.import_module(_HOME.get(name, "spinbench.models")), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""spinbench: which inference method, on which compute backend, is most accurate per second on your model?

>>> import spinbench
>>> model = spinbench.load("model.uai", evidence="model.uai.evid")
>>> result = spinbench.run(model, method="dhmc", backend="numba", budget="2 s", chains=16, seed=0)
>>> result.marginals, result.log_z, result.log_z_se

Names are imported on first use, so that `import spinbench` costs nothing.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # importing typing takes longer than everything else in this file
if TYPE_CHECKING:
    from typing import Any

    from spinbench.auditing.audit import audit
    from spinbench.inference.advising.advise import advise
    from spinbench.inference.bracketing.bracket import bracket
    from spinbench.inference.comparing import compare
    from spinbench.inference.marginals import Marginals
    from spinbench.inference.maximising.joint import joint
    from spinbench.inference.mixing import mixing
    from spinbench.inference.result import Result
    from spinbench.inference.runner import exact, run
    from spinbench.models import FactorGraph, PairwiseModel, load, save
    from spinbench.reporting.export import read
    from spinbench.reporting.profiles.profile import profile
    from spinbench.sweeping.command import sweep

__all__ = [
    "FactorGraph",
    "Marginals",
    "PairwiseModel",
    "Result",
    "advise",
    "audit",
    "bracket",
    "compare",
    "exact",
    "joint",
    "load",
    "mixing",
    "profile",
    "read",
    "run",
    "save",
    "sweep",
]

__version__ = "0.2.0.dev0"

_HOME = {
    "FactorGraph": "spinbench.models",
    "Marginals": "spinbench.inference.marginals",
    "PairwiseModel": "spinbench.models",
    "Result": "spinbench.inference.result",
    "advise": "spinbench.inference.advising.advise",
    "audit": "spinbench.auditing.audit",
    "bracket": "spinbench.inference.bracketing.bracket",
    "compare": "spinbench.inference.comparing",
    "exact": "spinbench.inference.runner",
    "joint": "spinbench.inference.maximising.joint",
    "load": "spinbench.models",
    "mixing": "spinbench.inference.mixing",
    "profile": "spinbench.reporting.profiles.profile",
    "read": "spinbench.reporting.export",
    "run": "spinbench.inference.runner",
    "save": "spinbench.models",
    "sweep": "spinbench.sweeping.command",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'spinbench' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

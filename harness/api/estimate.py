"""The estimates that methods end with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from spinbench.api.bounds import Bound
from spinbench.api.old_members import add_old_functions, replace_old_arguments
from spinbench.api.types import LogZKind

if TYPE_CHECKING:
    from spinbench.api.host_arrays import Draws


NOT_CONVERGED = "not converged"
"""The doubt of an iteration that ended without reaching its tolerance."""


@dataclass(frozen=True)
class Estimate:
    """A method's answer: marginals and log Z of a model, with their errors.

    Attributes:
        marginals: (N,) float64 p(s_i = 1) for binary models, else a list of (K_v,) arrays; None where the
            method gives none. NaN only where log Z is exact, of variables that sum out of it and are out of reach.
        marginals_se: standard errors in the same layout: what the run knows of its own scatter, which falls as
            1 / sqrt(n); None for deterministic methods.
        marginals_error_bound: error bounds in the same layout: at most one number in 200 is further off. None: those
            of scatter alone, 2.81 standard errors (`mathematics.claims.error_bound`).
        log_z: natural logarithm of the partition function; None where the method gives none.
        log_z_se: its standard error; None for deterministic methods; infinite if not known: "log Z unresolved".
        log_z_error_bound: its error bound; None: 2.81 standard errors.
        log_z_kind: what `log_z` is; a "lower" or "upper" bound holds with certainty.
        ess: effective sample sizes in the same layout: how many independent exact draws of s_i would have an empirical
            mean with the standard error reached. Rao-Blackwellisation can lift it above the sample count.
        r_hat: split R-hat in the same layout.
        pairs: of a `PairwiseModel` (E,) p(s_i = s_j = 1), in the order of its edges; of a `FactorGraph` a list of flat
            tables, one a factor, laid out as its log table is (C order); or a function without arguments that returns
            them, of a run's last estimate, when somebody asks. None where the method gives none.
        draws: (N, S) integer states, and their log weights (S,) or None where all weigh the same.
        log_z_estimates: every estimator of log Z that ran, by name, as (value, standard error).
        diagnostics: scalars of interest (acceptance rate, step size, …).
        bounds: on log Z, beside what `log_z` is: `log_z_kind` tells of itself.
        doubts: why not to believe the marginals or log Z ("marginals not mixed", "log Z unresolved", …), and "not
            converged" where an iteration ended without reaching its tolerance; empty: both hold within their error
            bounds.
    """

    marginals: Any = None
    marginals_se: Any = None
    log_z: float | None = None
    log_z_se: float | None = None
    log_z_kind: LogZKind = "estimate"
    ess: Any = None
    r_hat: Any = None
    pairs: Any = None
    draws: Draws | None = None
    log_z_estimates: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    bounds: tuple[Bound, ...] = ()
    marginals_error_bound: Any = None
    log_z_error_bound: float | None = None
    converged: InitVar[bool | None] = None
    pairs_se: InitVar[Any] = None

    def __post_init__(self, converged: bool | None, pairs_se: object) -> None:
        if converged is not None or pairs_se is not None:
            doubts = replace_old_arguments(self.doubts, converged=converged, pairs_se=pairs_se)
            object.__setattr__(self, "doubts", doubts)
        for quantity in ("marginals", "log_z"):
            se = getattr(self, f"{quantity}_se")
            if se is not None and getattr(self, f"{quantity}_error_bound") is None:
                object.__setattr__(self, f"{quantity}_error_bound", _bound_by_scatter(se))


def verdict(estimate: Estimate) -> str:
    """ "ok", or the doubts in a line."""
    doubts = estimate.doubts
    if is_doubted(estimate, "log Z") and not any(doubt.startswith("log Z") for doubt in doubts):
        doubts = (*doubts, "log Z unresolved")
    return ", ".join(doubts) or "ok"


def is_doubted(estimate: Estimate, quantity: Literal["marginals", "log Z"]) -> bool:
    """Whether a doubt concerns this quantity; of log Z, an error that is not known is one, too."""
    if quantity == "log Z" and estimate.log_z is not None and estimate.log_z_se == math.inf:
        return True
    return any(doubt.startswith(quantity) for doubt in estimate.doubts)


add_old_functions(Estimate, status=verdict, doubted=lambda estimate: partial(is_doubted, estimate))


def _bound_by_scatter(se: Any) -> Any:
    """Of standard errors; a value that is not a number is kept as it is, and `run` refuses it."""
    # Not imported above, since the command line loads this module to list what there is.
    import numpy as np

    from spinbench.mathematics.claims import BOUND

    parts = se if isinstance(se, list | tuple) else [se]
    bounds = [BOUND * np.asarray(part) if np.asarray(part).dtype.kind in "biuf" else part for part in parts]
    return bounds if parts is se else bounds[0]

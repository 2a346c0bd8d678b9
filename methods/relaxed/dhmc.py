"""Hamiltonian Monte Carlo on the Gaussian relaxation p(x) of a binary model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from spinbench.api import Backend, Engine, MethodProfile, Program, Reduction, State, Trace
from spinbench.errors import SpinbenchError
from spinbench.foundation.parameters import check_choice, check_setting
from spinbench.mathematics.relaxation.density import Relaxation
from spinbench.methods.relaxed.dhmc_program import DHMCProgram
from spinbench.methods.relaxed.relaxed_method import RelaxedMethod
from spinbench.methods.relaxed.step_size import MAX_ANGLE
from spinbench.methods.relaxed.tables import Factor, RelaxedTables

DHMCForm = Literal["identity", "harmonium", "preconditioned", "sparse"]
FACTORS: dict[DHMCForm, Factor] = {
    "identity": "precision",
    "harmonium": "harmonium",
    "preconditioned": "gram",
    "sparse": "edges",
}


@dataclass(frozen=True, kw_only=True)
class DHMC(RelaxedMethod):
    """Discrete Hamiltonian Monte Carlo (Zhang et al. 2012, section 3.2). The defaults are the paper's choices.

    Per sample: a new momentum, `leapfrog_steps` steps, one Metropolis test; marginals are means of σ(α_i + b_i).

    The paper's statements that do not hold: with A = I a gradient costs O(N²), since Q⁻¹ is dense, and not O(N)
    (section 3.2); only form="sparse" has that cost. Proposition 1 gives log-concavity for λ_max(W + D) <= 4, strict
    below 4. An unbiased estimate of 1/Z tends to overestimate log Z, not to underestimate it (section 3.4).

    Attributes:
        form: "identity": A = I and unit mass, the paper's; "harmonium": A = Λ^(-½)Vᵀ and unit mass;
            "preconditioned": A = I with mass Q⁻¹, whose Gaussian part is solved exactly, as rotations in the planes of
            position and velocity, after the tilt N(x; 0, Q) ∝ N(x; Qm, Q) exp(-m·x) that recentres it;
            "sparse": the same with products and noise factored over the edges, which needs d_i > Σ_j |W_ij|.
        leapfrog_steps: per sample.
        step_size: None: adapted in burn-in by dual averaging to `target_acceptance`, one step size for all chains,
            from their mean acceptance, frozen afterwards. In radians for the rotating forms, at most 1.5.
        target_acceptance: mean acceptance probability aimed at.
        jitter: each trajectory's step is the step size times a uniform factor in 1 ± jitter. None: 0.2 for the
            rotating forms, whose fixed total angle can be a period, else 0.
        diagonal: "minshift", "dd", "sdp" (`spinbench.mathematics.relaxation.diagonal`), or N numbers.
        slack: the share of |λ_min(W)| (minshift) or of d (dd, sdp) that is added to d; unused where d is given. With
            unit mass and A = I it sets λ_min(Q), hence the step: 0.1 to 0.5 do well.
        log_z: the estimator that becomes the answer (`relaxation.estimators`); the mirrored and bridge estimators
            are reported together, zero_state with zero_state_bar. The paper fits and
            evaluates its Gaussian on the same draws, "mirrored_in_sample", which is biased low; "bridge" is far better.
    """

    form: DHMCForm = "identity"
    leapfrog_steps: int = 5
    step_size: float | None = None
    target_acceptance: float = 0.9
    jitter: float | None = None
    diagonal: str | Sequence[float] = "minshift"
    slack: float = 0.1

    name: ClassVar[str] = "dhmc"
    summary: ClassVar[str] = "Hamiltonian Monte Carlo on the Gaussian relaxation p(x)"
    profile = MethodProfile(family="chains at one temperature")

    def __post_init__(self) -> None:
        check_choice(self, "form", DHMCForm)
        super().__post_init__()
        check_setting(self, "leapfrog_steps", self.leapfrog_steps >= 1, "at least 1")
        has_size = self.step_size is None or 0 < self.step_size < np.inf
        check_setting(self, "step_size", has_size, "a positive number or None")
        if self.step_size is not None and self.rotates and self.step_size > MAX_ANGLE:
            raise SpinbenchError(
                f"step_size={self.step_size} was given; form={self.form} allows at most {MAX_ANGLE} radians"
            )
        check_setting(self, "target_acceptance", 0 < self.target_acceptance < 1, "a number between 0 and 1")
        check_setting(self, "jitter", self.jitter is None or 0 <= self.jitter < 1, "0 <= jitter < 1 or None")

    @property
    def rotates(self) -> bool:
        """Whether the Gaussian part is solved exactly."""
        return self.form in ("preconditioned", "sparse")

    @property
    def adapts(self) -> bool:
        """Whether the step size is found in burn-in."""
        return self.step_size is None

    @property
    def log_limit(self) -> float:
        """The logarithm of the largest step size."""
        return math.log(MAX_ANGLE) if self.rotates else math.inf

    @property
    def relative_jitter(self) -> float:
        """`jitter`, or the form's own."""
        # Without jitter, L rotations by one angle may add up to a full turn, and the trajectory ends where it began.
        if self.jitter is not None:
            return self.jitter
        if self.rotates:
            return 0.2
        return 0.0

    @property
    def factor(self) -> Factor:
        return FACTORS[self.form]

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """The statistics of the state after each step.

        p: (N, C) σ(u). accept: (C,) acceptance probability of the last proposal. step_size: (C,) before jitter.
        """
        return {**super().reductions, "accept": "sum", "step_size": "last"}

    def first_step(self, relaxation: Relaxation) -> float:
        """The given step size, if there is one."""
        if self.step_size is None:
            return super().first_step(relaxation)
        return self.step_size

    def program(self, backend: Backend) -> Program:
        """Trajectories of all chains at once (`spinbench.methods.relaxed.dhmc_program`)."""
        return DHMCProgram(self, backend).program()

    def warm_up(
        self, tables: RelaxedTables, engine: Engine, state: State, steps: int, trace: Trace
    ) -> tuple[State, int]:
        """Burn-in tells how long chains take to leave their starts (`family.max_visits_from_arrivals`)."""
        trace.watched = "p"
        return super().warm_up(tables, engine, state, steps, trace)

    def diagnostics(self, trace: Trace) -> dict[str, float]:
        """Mean acceptance probability, and the step size."""
        return {
            "acceptance": float(trace.mean("accept").mean()),
            "step_size": float(trace.total("step_size").mean()),
        }

"""What the samplers of the relaxation have in common: settings, plan and estimate."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from spinbench.api import Engine, Estimate, Method, Model, PairwiseModel, Reduction, State, Trace
from spinbench.foundation import deadline
from spinbench.foundation.parameters import check_choice, check_setting, is_int_at_least
from spinbench.mathematics.relaxation.density import Relaxation, relax
from spinbench.mathematics.relaxation.diagonal import checked_diagonal
from spinbench.methods.relaxed import family
from spinbench.methods.relaxed.digest import MIN_DRAWS, MIN_LOOKS, GaussianDigest
from spinbench.methods.relaxed.tables import Factor, RelaxedTables, build_tables


@dataclass(frozen=True, kw_only=True)
class RelaxedMethod(Method[RelaxedTables]):
    """Common settings of the samplers of the Gaussian relaxation.

    Attributes:
        diagonal: "minshift", "dd", "sdp" (`relaxation.diagonal`), or N numbers.
        slack: the share of |λ_min(W)| (minshift) or of d (dd, sdp) that is added to d; unused where d is given.
        log_z: the estimator that becomes the answer (`relaxation.estimators`); the mirrored and bridge estimators
            are reported together, zero_state with zero_state_bar.
        draws: of all chains together, evenly spaced, that the estimators get at least, as far as there are
            so many samples; None: as many as take a tenth of the run, and 1,024 or more. Estimators that fit and
            evaluate on the same draws take at most `estimators.MAX_DRAWS`.
    """

    diagonal: str | Sequence[float] = "sdp"
    slack: float = 0.1
    log_z: family.LogZ = "bridge"
    draws: int | None = None

    more_diagonals: ClassVar[tuple[str, ...]] = ()
    """Rules that `diagonal` may name beside those of `relaxation.diagonal`."""

    comparison_steps: ClassVar[float] = 3.0
    """Cost in steps of the comparison of a look with a Gaussian: draws of its own, four products and two normalisers a
    chain."""

    def __post_init__(self) -> None:
        check_choice(self, "log_z", family.LogZ)
        check_setting(
            self, "draws", self.draws is None or is_int_at_least(self.draws, 1), "an integer of at least 1 or None"
        )
        object.__setattr__(self, "diagonal", checked_diagonal(self.diagonal, self.slack, self.more_diagonals))

    @property
    @abstractmethod
    def factor(self) -> Factor:
        """What is known of Q."""

    @property
    def units(self) -> str:
        """The statistic, (N, C), whose means are the marginals."""
        return "p"

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """`units`: σ(u) of x, or s."""
        return {self.units: "sum"}

    def warm_up(
        self, tables: RelaxedTables, engine: Engine, state: State, steps: int, trace: Trace
    ) -> tuple[State, int]:
        """Looks show how draws compare with a Gaussian, where log Z is made of that and chains make two halves."""
        if self.log_z != "none":
            min_looks = max(-(-(self.draws or MIN_DRAWS) // trace.chains), MIN_LOOKS)
            fits = trace.chains > 1 and self.log_z in ("bridge", "mirrored")
            trace.digest = GaussianDigest(tables.relaxation.value, min_looks, self.comparison_steps, fits)
        return state, 0

    def relaxation(self, model: PairwiseModel) -> Relaxation:
        """With the diagonal of the settings."""
        return relax(model, self.diagonal, self.slack)

    def first_step(self, relaxation: Relaxation) -> float:
        """The step size to start from: √λ_min(Q)/2 with unit mass on α, ½ otherwise."""
        # With unit mass on α the shortest length scale is √λ_min(Q); the other forms have a standard Gaussian part.
        return 0.5 * relaxation.smallest**0.5 if self.factor == "precision" else 0.5

    def plan(self, model: Model) -> RelaxedTables:
        """D, the factor of Q and the first step size.

        Raises:
            ModelError: W + D is not positive definite.
            UnsupportedError: N is too large for the factor, or D does not suit it.
        """
        assert isinstance(model, PairwiseModel)
        family.check_model(model, self.log_z)
        deadline.require(family.planning_seconds(model, self.factor))
        relaxation = self.relaxation(model)
        return build_tables(relaxation, self.factor, self.first_step(relaxation))

    def diagnostics(self, trace: Trace) -> dict[str, float]:
        """Of the answer."""
        return {}

    def estimate(self, model: Model, tables: RelaxedTables, trace: Trace) -> Estimate:
        return family.relaxed_estimate(tables.relaxation.value, trace, self.log_z, self.units, self.diagnostics(trace))

"""Block Gibbs sampling of p(x, s): all of x given s, then all of s given x."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from spinbench.api import Array, Backend, Engine, Key, MethodProfile, PairwiseModel, Program, State, Trace
from spinbench.foundation.parameters import check_choice
from spinbench.mathematics.relaxation.density import Relaxation, relax
from spinbench.methods.relaxed import family
from spinbench.methods.relaxed.relaxed_method import RelaxedMethod
from spinbench.methods.relaxed.tables import (
    Factor,
    RelaxedTables,
    draw_position,
    normals_per_draw,
    record_alpha,
    unit_log_odds,
)
from spinbench.methods.weighted_means import MARGINAL_STATISTICS, Marginals

BlockForm = Literal["harmonium", "identity", "sparse"]
FACTORS: dict[BlockForm, Factor] = {"harmonium": "harmonium", "identity": "gram", "sparse": "edges"}


class BlockGibbsState(NamedTuple):
    """s, then x given s: s (N, C) in {0, 1}, u = α + b (N, C), p(s = 1|x) (N, C)."""

    s: Array
    u: Array
    p: Array


@dataclass(frozen=True, kw_only=True)
class BlockGibbs(RelaxedMethod):
    """Block Gibbs on the Gaussian relaxation (Zhang et al. 2012, section 3.1).

    α = Qs + noise with covariance Q, then s_i = 1 with probability σ(α_i + b_i). The law of the chain of s is the same
    for every A; `form` chooses what a step costs. A small trace of D makes it mix faster.

    Attributes:
        form: "harmonium": A = Λ^(-½)Vᵀ, two dense products a step; "identity": A = I, a product with Q and one with a
            triangular factor; "sparse": noise factored over the edges, which needs d_i > Σ_j |W_ij|.
        diagonal: "minshift", "dd", "sdp" (`relaxation.diagonal`), or N numbers; "auto": dd for form=sparse, else sdp.
        slack: the share of |λ_min(W)| (minshift) or of d (dd, sdp) that is added to d; unused where d is given.
        marginals: "rao_blackwell": means of σ(α_i + b_i); "empirical": means of s.
    """

    form: BlockForm = "harmonium"
    diagonal: str | Sequence[float] = "auto"
    slack: float = 0.05
    marginals: Marginals = "rao_blackwell"

    name: ClassVar[str] = "block_gibbs"
    summary: ClassVar[str] = "block Gibbs on the Gaussian relaxation p(x, s)"
    profile = MethodProfile(family="chains at one temperature")
    more_diagonals: ClassVar[tuple[str, ...]] = ("auto",)
    # A step is cheaper than a trajectory of `dhmc`.
    comparison_steps: ClassVar[float] = 8.0

    def __post_init__(self) -> None:
        check_choice(self, "form", BlockForm)
        check_choice(self, "marginals", Marginals)
        super().__post_init__()

    @property
    def factor(self) -> Factor:
        return FACTORS[self.form]

    @property
    def units(self) -> str:
        """σ(u) of the new x, or the new s."""
        return MARGINAL_STATISTICS[self.marginals]

    def relaxation(self, model: PairwiseModel) -> Relaxation:
        """With the form's own rule for `diagonal=auto`."""
        if self.diagonal == "auto":
            return relax(model, "dd" if self.form == "sparse" else "sdp", self.slack)
        return super().relaxation(model)

    def program(self, backend: Backend) -> Program:
        """s given x, then x given s, so that the state is a draw of (s, x) with x fresh."""
        xp = backend.xp

        def draw_given_states(key: Key, t: RelaxedTables, s: Array) -> BlockGibbsState:
            noise = backend.normal(key, (normals_per_draw(t), s.shape[1]))
            u = unit_log_odds(xp, t, draw_position(xp, t, s, noise))
            return BlockGibbsState(s, u, family.unit_means(xp, t.sites, u))

        def step(key: Key, t: RelaxedTables, state: BlockGibbsState) -> BlockGibbsState:
            s = family.draw_units(backend, backend.fold_in(key, 0), t.sites, state.p)
            return draw_given_states(backend.fold_in(key, 1), t, s)

        def observe(t: RelaxedTables, state: BlockGibbsState) -> dict[str, Array]:
            return {self.units: getattr(state, self.units)}

        def look(key: Key, t: RelaxedTables, state: BlockGibbsState) -> dict[str, Array]:
            return record_alpha(t, state.u, self.log_z)

        return Program(init=draw_given_states, step=step, observe=observe, look=look)

    def warm_up(
        self, tables: RelaxedTables, engine: Engine, state: State, steps: int, trace: Trace
    ) -> tuple[State, int]:
        """Burn-in tells how long chains take to leave their starts (`family.max_visits_from_arrivals`)."""
        trace.watched = self.units
        return super().warm_up(tables, engine, state, steps, trace)

"""Block Gibbs sampling of p(x, s): all of x given s, then all of s given x."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import Array, Backend, Engine, Estimate, Key, Method, Program, Reduction, State
from spinbench.api.trace import Trace
from spinbench.mathematics.relaxation.density import EdgeFactor, Relaxation, Sites, relax
from spinbench.mathematics.relaxation.diagonal import checked_diagonal
from spinbench.methods.relaxed import family
from spinbench.models import Model, PairwiseModel

FloatArray = npt.NDArray[np.float64]
BlockForm = Literal["harmonium", "identity", "sparse"]
Marginals = Literal["rao_blackwell", "empirical"]


class BlockGibbsTables(NamedTuple):
    """What `BlockGibbs.plan` prepares; which members are None depends on the form.

    Attributes:
        d: (N,) float64, the diagonal D.
        bias: (N,) float64, b = a - d/2.
        root: (N, N) float64. harmonium: B = VΛ^½, α = B(Bᵀs + ε); identity: lower triangular L, α = Qs + Lε.
        gram: (N, N) float64, Q = W + D; identity only.
        edges: sparse only: α as in `EdgeFactor`.
        sites: how 1-of-K groups are drawn; None for models without groups.
    """

    d: FloatArray
    bias: FloatArray
    root: FloatArray | None
    gram: FloatArray | None
    edges: EdgeFactor | None
    sites: Sites | None


class BlockGibbsState(NamedTuple):
    """s, then x given s: s (N, C) in {0, 1}, u = α + b (N, C), p(s = 1|x) (N, C)."""

    s: Array
    u: Array
    p: Array


@dataclass(frozen=True)
class BlockGibbs(Method):
    """Block Gibbs on the Gaussian relaxation (Zhang et al. 2012, section 3.1).

    α = Qs + noise with covariance Q, then s_i = 1 with probability σ(α_i + b_i). The law of the chain of s is the same
    for every A; `form` chooses what a step costs. A small trace of D makes it mix faster.

    Attributes:
        form: "harmonium": A = Λ^(-½)Vᵀ, two dense products a step; "identity": A = I, a product with Q and one with a
            triangular factor; "sparse": noise factored over the edges, which needs d_i > Σ_j |W_ij|.
        diagonal: "minshift", "dd", "sdp" (`relaxation.diagonal`), or N numbers; "auto": dd for form=sparse, else sdp.
        slack: the share of |λ_min(W)| (minshift) or of d (dd, sdp) that is added to d; unused where d is given.
        marginals: "rao_blackwell": means of σ(α_i + b_i); "empirical": means of s.
        log_z: the estimator that becomes the answer (`relaxation.estimators`); the mirrored and bridge estimators
            are reported together, zero_state (which looks at every step) with zero_state_bar.
        draws: of all chains together, evenly spaced, that the estimators get, as far as there are
            so many samples (they take at most `estimators.MAX_DRAWS`); None: one of each chain and batch, 256 or more
            a chain with a budget in samples.
    """

    form: BlockForm = "harmonium"
    diagonal: str | Sequence[float] = "auto"
    slack: float = 0.05
    marginals: Marginals = "rao_blackwell"
    log_z: family.LogZ = "bridge"
    draws: int | None = None

    name: ClassVar[str] = "block_gibbs"
    summary: ClassVar[str] = "block Gibbs on the Gaussian relaxation p(x, s)"

    def __post_init__(self) -> None:
        family.check_choice("form", self.form, BlockForm)
        family.check_choice("marginals", self.marginals, Marginals)
        family.check_choice("log_z", self.log_z, family.LogZ)
        family.check_draws(self.draws)
        diagonal = checked_diagonal(self.diagonal, self.slack, extra=("auto",))
        object.__setattr__(self, "diagonal", diagonal)

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """p or s, (N, C): σ(u) of the new x, or the new s. Then those of `relaxed.log_z_reductions`."""
        return {self._units: "sum", **family.log_z_reductions(self.log_z)}

    def batches(self, chains: int) -> int:
        """As many as `draws` asks for."""
        return family.batches(self.draws, self.log_z, chains)

    def planning_seconds(self, model: Model) -> float:
        """Of dense matrices."""
        return family.planning_seconds(model, self.form)

    def plan(self, model: Model) -> BlockGibbsTables:
        """D and the factor of Q.

        Raises:
            ModelError: W + D is not positive definite.
            UnsupportedError: N is too large for the form, or D does not suit it.
        """
        assert isinstance(model, PairwiseModel)
        family.check_model(model, self.log_z)
        relaxation = self._relax(model)
        root = None
        if self.form != "sparse":
            root = relaxation.harmonium if self.form == "harmonium" else relaxation.cholesky
        return BlockGibbsTables(
            d=relaxation.d,
            bias=relaxation.bias,
            root=root,
            gram=relaxation.gram if self.form == "identity" else None,
            edges=relaxation.edge_factor if self.form == "sparse" else None,
            sites=relaxation.sites,
        )

    def program(self, backend: Backend) -> Program:
        """s given x, then x given s, so that the state is a draw of (s, x) with x fresh."""

        def given(key: Key, tables: BlockGibbsTables, s: Array) -> BlockGibbsState:
            u = tables.bias[:, None] + draw_field(backend, key, tables, s)
            return BlockGibbsState(s, u, family.unit_means(backend.xp, tables.sites, u))

        def step(key: Key, tables: BlockGibbsTables, state: BlockGibbsState) -> BlockGibbsState:
            s = family.draw_units(backend, backend.fold_in(key, 0), tables.sites, state.p)
            return given(backend.fold_in(key, 1), tables, s)

        def observe(tables: BlockGibbsTables, state: BlockGibbsState) -> dict[str, Array]:
            seen: dict[str, Array] = {"s": state.s} if self.marginals == "empirical" else {"p": state.p}
            if self.log_z == "zero_state":
                seen["zero_state"] = -family.log_normaliser(backend.xp, tables.sites, state.u)
            if self.log_z != "none":
                seen["alpha"] = state.u - tables.bias[:, None]
            return seen

        return Program(init=given, step=step, observe=observe)

    def warm_up(
        self, tables: BlockGibbsTables, engine: Engine, state: State, steps: int, trace: Trace
    ) -> tuple[State, int]:
        """Burn-in tells how long chains take to leave their starts (`relaxed.arrivals`)."""
        trace.watched = self._units
        return state, 0

    def estimate(self, model: Model, tables: BlockGibbsTables, trace: Trace) -> Estimate:
        assert isinstance(model, PairwiseModel)
        return family.estimate(lambda: Relaxation(model, tables.d), trace, self.log_z, self._units)

    @property
    def _units(self) -> str:
        return "p" if self.marginals == "rao_blackwell" else "s"

    def _relax(self, model: PairwiseModel) -> Relaxation:
        if self.diagonal == "auto":
            return relax(model, "dd" if self.form == "sparse" else "sdp", self.slack)
        return relax(model, self.diagonal, self.slack)


def draw_field(backend: Backend, key: Key, tables: BlockGibbsTables, s: Array) -> Array:
    """(N, C): α ~ N(Qs, Q) for s (N, C)."""
    xp, shape = backend.xp, s.shape
    if tables.edges is not None:
        count = tables.edges.weights.shape[0] + shape[0]
        return family.edge_product(xp, tables.edges, s, backend.normal(key, (count, shape[1])))
    noise = backend.normal(key, shape)
    if tables.gram is not None:
        return xp.matmul(tables.gram, s) + xp.matmul(tables.root, noise)
    root: Array = tables.root
    return xp.matmul(root, xp.matmul(root.T, s) + noise)

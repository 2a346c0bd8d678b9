"""What samplers of p(x) from outside share: BlackJAX's, of which each chain is one, on JAX.

Cabezas, Corenflos, Lao and Louf, "BlackJAX: composable Bayesian inference in JAX", 2024. They get the density of `dhmc`
in its coordinates, and start, adapt and answer as it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import Array, Backend, Estimate, Key, Method, Reduction
from spinbench.api.trace import Trace
from spinbench.mathematics.relaxation.density import Relaxation, Sites, relax
from spinbench.mathematics.relaxation.diagonal import checked_diagonal
from spinbench.methods.relaxed import family
from spinbench.models import Model, PairwiseModel

FloatArray = npt.NDArray[np.float64]


class Tables(NamedTuple):
    """What `Outside.plan` prepares.

    Attributes:
        d: (N,) float64, the diagonal D.
        bias: (N,) float64, b = a - d/2.
        root: (N, N) float64, B = VΛ^½ with Q = BBᵀ: α = Bz.
        precision: (N, N) float64, Q⁻¹; None where chains move in z, in which it is the identity.
        sites: how 1-of-K groups are drawn; None for models without groups.
        first_step: () float64, the step size to begin with.
    """

    d: FloatArray
    bias: FloatArray
    root: FloatArray
    precision: FloatArray | None
    sites: Sites | None
    first_step: FloatArray


@dataclass(frozen=True)
class Outside(Method):
    """Settings that all have.

    Attributes:
        diagonal: "minshift", "dd", "sdp" (`relaxation.diagonal`), or N numbers.
        slack: the share of |λ_min(W)| (minshift) or of d (dd, sdp) that is added to d; unused where d is given.
        log_z: the estimator that becomes the answer, as of `dhmc`.
        draws: of all chains together that the estimators get, as of `dhmc`.
    """

    diagonal: str | Sequence[float] = "sdp"
    slack: float = 0.1
    log_z: family.LogZ = "bridge"
    draws: int | None = None

    needs: ClassVar[frozenset[str]] = frozenset({"arrays", "jax"})
    requires: ClassVar[tuple[str, ...]] = ("blackjax",)
    install: ClassVar[str] = "pip install 'spinbench[blackjax]'"

    def __post_init__(self) -> None:
        family.check_choice("log_z", self.log_z, family.LogZ)
        family.check_draws(self.draws)
        object.__setattr__(self, "diagonal", checked_diagonal(self.diagonal, self.slack))

    @property
    def whitened(self) -> bool:
        """Whether chains move in z rather than in x = α."""
        return True

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """p: (N, C) σ(u). accept, evaluations: (C,) acceptance probability, evaluations of the density of the last
        sample. step_size: (C,). Then those of `relaxed.log_z_reductions`."""
        seen: dict[str, Reduction] = {"p": "sum", "accept": "sum", "evaluations": "sum", "step_size": "last"}
        return seen | family.log_z_reductions(self.log_z)

    def batches(self, chains: int) -> int:
        """As many as `draws` asks for."""
        return family.batches(self.draws, self.log_z, chains)

    def planning_seconds(self, model: Model) -> float:
        """Of dense matrices."""
        return family.planning_seconds(model, "harmonium")

    def plan(self, model: Model) -> Tables:
        """D and the root of Q.

        Raises:
            ModelError: W + D is not positive definite.
            UnsupportedError: N is too large for dense matrices.
        """
        assert isinstance(model, PairwiseModel)
        family.check_model(model, self.log_z)
        relaxation = relax(model, self.diagonal, self.slack)
        root, precision = relaxation.harmonium, None if self.whitened else relaxation.precision
        first = 0.5 if self.whitened else 0.5 * relaxation.smallest**0.5
        return Tables(relaxation.d, relaxation.bias, root, precision, relaxation.sites, np.array(first))

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        assert isinstance(model, PairwiseModel)
        told = {
            "acceptance": float(trace.mean("accept").mean()),
            "evaluations": float(trace.mean("evaluations").mean()),
            "step_size": float(trace.total("step_size")[0]),
        }
        return family.estimate(lambda: Relaxation(model, tables.d), trace, self.log_z, diagnostics=told)


class Density:
    """p(x) over a backend's arrays, at the positions (N, C) of chains."""

    def __init__(self, backend: Backend) -> None:
        self.backend, self.xp = backend, backend.xp

    def draw(self, key: Key, t: Tables, s: Array) -> Array:
        """x ~ p(x|s) for s (N, C)."""
        z = self.xp.matmul(t.root.T, s) + self.backend.normal(key, s.shape)
        return z if t.precision is None else self.xp.matmul(t.root, z)

    def fields(self, t: Tables, x: Array) -> Array:
        """(N, C): u = α + b."""
        return (x if t.precision is not None else self.xp.matmul(t.root, x)) + t.bias[:, None]

    def log_density(self, t: Tables, x: Array) -> Array:
        """(C,): log p(x) up to a constant."""
        pull = x if t.precision is None else self.xp.matmul(t.precision, x)
        return family.log_normaliser(self.xp, t.sites, self.fields(t, x)) - 0.5 * self.xp.sum(x * pull, axis=0)

    def seen(self, t: Tables, u: Array, log_z: family.LogZ) -> dict[str, Array]:
        """The statistics that marginals and log Z are made of."""
        found = {"p": family.unit_means(self.xp, t.sites, u)}
        if log_z == "zero_state":
            found["zero_state"] = -family.log_normaliser(self.xp, t.sites, u)
        if log_z != "none":
            found["alpha"] = u - t.bias[:, None]
        return found


def of_one(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of (N, C) positions as one of a single chain's (N,)."""

    def call(x: Array) -> Array:
        return function(x[:, None])[0]

    return call


def every_chain(move: Callable[[Any, Any], Any], key: Key, chains: Any, count: int) -> Any:
    """`move(key, chain)` of all chains at once; their axis stays the last, where scalars become (C,)."""
    import jax

    return jax.vmap(move, in_axes=(0, -1), out_axes=-1)(jax.random.split(key, count), chains)

"""What samplers of p(x) from outside share: BlackJAX's, of which each chain is one, on JAX.

Cabezas, Corenflos, Lao and Louf, "BlackJAX: composable Bayesian inference in JAX", 2024. They get the density of `dhmc`
in its coordinates, and start, adapt and answer as it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from spinbench.api import Array, Key, Reduction, Trace
from spinbench.methods.chain_program import ChainProgram
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

if TYPE_CHECKING:
    from blackjax.mcmc.elliptical_slice import EllipSliceState
    from blackjax.mcmc.hmc import HMCState
    from blackjax.mcmc.mala import MALAState


Chains = TypeVar("Chains")
Moved = TypeVar("Moved")


class HasChains(Protocol):
    """A program's state: `chains` are BlackJAX's, with their positions (N, C)."""

    @property
    def chains(self) -> HMCState | MALAState | EllipSliceState: ...


@dataclass(frozen=True, kw_only=True)
class BlackJAXMethod(RelaxedMethod):
    """Common settings of BlackJAX's samplers: those of every sampler of the Gaussian relaxation."""

    requires: ClassVar[tuple[str, ...]] = ("jax", "blackjax")

    @property
    def factor(self) -> Factor:
        return "harmonium"

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """p: (N, C) σ(u). accept, evaluations: (C,) acceptance probability, evaluations of the density of the last
        sample. step_size: (C,)."""
        return {**super().reductions, "accept": "sum", "evaluations": "sum", "step_size": "last"}

    def diagnostics(self, trace: Trace) -> dict[str, float]:
        """Mean acceptance probability and number of evaluations, and the step size."""
        return {
            "acceptance": float(trace.mean("accept").mean()),
            "evaluations": float(trace.mean("evaluations").mean()),
            "step_size": float(trace.total("step_size")[0]),
        }


class BlackJAXProgram(ChainProgram):
    """Of p(x) over a backend's arrays, at the positions (N, C) of chains."""

    log_z: family.LogZ

    def draw_positions(self, key: Key, t: RelaxedTables, s: Array) -> Array:
        """x ~ p(x|s) for s (N, C)."""
        return draw_position(self._xp, t, s, self._backend.normal(key, (normals_per_draw(t), s.shape[1])))

    def log_density(self, t: RelaxedTables, x: Array) -> Array:
        """(C,): log p(x) up to a constant."""
        pull = x if t.precision is None else self._xp.matmul(t.precision, x)
        normaliser = family.log_normaliser(self._xp, t.sites, unit_log_odds(self._xp, t, x))
        return normaliser - 0.5 * self._xp.sum(x * pull, axis=0)

    def chain_means(self, t: RelaxedTables, x: Array) -> Array:
        """(N, C): σ(u) at x, of which marginals are made."""
        return family.unit_means(self._xp, t.sites, unit_log_odds(self._xp, t, x))

    def look(self, key: Key, t: RelaxedTables, state: HasChains) -> dict[str, Array]:
        """α, of which log Z is made."""
        return record_alpha(t, unit_log_odds(self._xp, t, state.chains.position), self.log_z)


def for_single_chain(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of (N, C) positions as one of a single chain's (N,)."""

    def call(x: Array) -> Array:
        return function(x[:, None])[0]

    return call


def map_over_chains(move: Callable[[Key, Chains], Moved], key: Key, chains: Chains, count: int) -> Moved:
    """`move(key, chain)` of all chains at once; their axis stays the last, where scalars become (C,)."""
    import jax

    return jax.vmap(move, in_axes=(0, -1), out_axes=-1)(jax.random.split(key, count), chains)

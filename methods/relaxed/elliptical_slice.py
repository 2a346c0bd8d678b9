"""BlackJAX's elliptical slice sampler on the Gaussian relaxation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from spinbench.api import Array, Backend, Key, Program
from spinbench.methods.relaxed import family
from spinbench.methods.relaxed.blackjax_method import BlackJAXMethod, BlackJAXProgram, for_single_chain, map_over_chains
from spinbench.methods.relaxed.tables import RelaxedTables, unit_log_odds

if TYPE_CHECKING:
    from blackjax.mcmc.elliptical_slice import EllipSliceState


@dataclass(frozen=True, kw_only=True)
class EllipticalSlice(BlackJAXMethod):
    """Elliptical slice sampling (Murray, Adams and MacKay, AISTATS 2010), as BlackJAX has it.

    The ellipses are those of N(x; Qm, Q), the likelihood is Π (1 + exp(u_i)) exp(-m·x): their product is p(x) for
    every m. It is ½ at first, then the marginals that the windows of burn-in gave, and frozen. No form of A changes
    what it does.
    """

    name: ClassVar[str] = "elliptical_slice"
    summary: ClassVar[str] = "BlackJAX's elliptical slice sampler on the Gaussian relaxation p(x)"

    def program(self, backend: Backend) -> Program:
        """A draw from an ellipse for every chain a step; all wait for the one that shrinks its bracket longest."""
        return EllipticalSliceProgram(self, backend).program()


class State(NamedTuple):
    """BlackJAX's states of the chains, (N, C) and (C,); evaluations (C,) of the last step; m (N, 1); the sum of p
    over the burn-in's window and its number of steps."""

    chains: EllipSliceState
    evaluations: Array
    m: Array
    total: Array
    count: Array


class EllipticalSliceProgram(BlackJAXProgram):
    """The program's functions."""

    def __init__(self, method: EllipticalSlice, backend: Backend) -> None:
        from blackjax.mcmc import elliptical_slice

        super().__init__(backend)
        self.log_z, self.sampler = method.log_z, elliptical_slice

    def init(self, key: Key, t: RelaxedTables, start: Array) -> State:
        """z ~ p(z|s)."""
        z, m = self.draw_positions(key, t, start), 0.0 * start[:, :1] + 0.5
        none = self._xp.zeros_like(z[0, :])
        return State(self._initial_chains(t, m, z), none, m, self._xp.zeros_like(m), none[0] + 0.0)

    def step(self, key: Key, t: RelaxedTables, state: State) -> State:
        """One sample of each chain."""
        root: Array = t.root
        centre = self._xp.matmul(root.T, state.m)[:, 0]
        kernel = self.sampler.build_kernel(self._xp.ones_like(centre), centre)
        likelihood = for_single_chain(lambda z: self._tilted_log_likelihood(t, state.m, z))

        def move(key: Key, chain: EllipSliceState) -> tuple[EllipSliceState, Array]:
            chain, info = kernel(key, chain, likelihood)
            return chain, info.subiter

        chains, evaluations = map_over_chains(move, key, state.chains, state.evaluations.shape[0])
        return state._replace(chains=chains, evaluations=0.0 * state.evaluations + evaluations)

    def warm(self, key: Key, t: RelaxedTables, state: State) -> State:
        """A sample, added to the window."""
        state = self.step(key, t, state)
        p = self.chain_means(t, state.chains.position)
        total = state.total + self._xp.mean(p, axis=1, keepdims=True)
        return state._replace(total=total, count=state.count + 1)

    def adapt(self, t: RelaxedTables, state: State, last: bool) -> State:
        """A new m from a window's mean."""
        xp, count = self._xp, state.count
        m = xp.where(count > 0, state.total / xp.maximum(count, xp.ones_like(count)), state.m)
        chains = self._initial_chains(t, m, state.chains.position)
        return State(chains, state.evaluations, m, xp.zeros_like(m), xp.zeros_like(count))

    def observe(self, t: RelaxedTables, state: State) -> dict[str, Array]:
        """What `BlackJAXMethod.reductions` lists; every step is accepted, and has no size."""
        p, none = self.chain_means(t, state.chains.position), self._xp.zeros_like(state.evaluations)
        return {"p": p, "accept": none + 1.0, "evaluations": state.evaluations, "step_size": none}

    def _initial_chains(self, t: RelaxedTables, m: Array, z: Array) -> EllipSliceState:
        return self.sampler.EllipSliceState(z, self._tilted_log_likelihood(t, m, z))

    def _tilted_log_likelihood(self, t: RelaxedTables, m: Array, z: Array) -> Array:
        u = unit_log_odds(self._xp, t, z)
        return family.log_normaliser(self._xp, t.sites, u) - self._xp.sum(m * u, axis=0)

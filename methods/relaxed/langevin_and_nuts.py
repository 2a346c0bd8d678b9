"""BlackJAX's NUTS and MALA on the Gaussian relaxation, with step sizes that burn-in adapts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

from spinbench.api import Array, Backend, Key, Program
from spinbench.foundation.parameters import check_choice, check_setting
from spinbench.methods.relaxed.blackjax_method import BlackJAXMethod, BlackJAXProgram, for_single_chain, map_over_chains
from spinbench.methods.relaxed.step_size import StepSize, dual_averaging, final_step_size, restart_step_size
from spinbench.methods.relaxed.tables import Factor, RelaxedTables

if TYPE_CHECKING:
    from blackjax.mcmc.hmc import HMCState
    from blackjax.mcmc.mala import MALAState

    LogDensity = Callable[[Array], Array]
    InitChain = Callable[[Array, LogDensity], HMCState | MALAState]
    MoveChain = Callable[
        [Key, HMCState | MALAState, LogDensity, Array, Array], tuple[HMCState | MALAState, Array, Array | int]
    ]

BlackJAXForm = Literal["identity", "harmonium"]


@dataclass(frozen=True, kw_only=True)
class AdaptiveStepMethod(BlackJAXMethod):
    """Common settings of NUTS and MALA.

    Attributes:
        form: coordinates, as of `dhmc`: "identity": x = α; "harmonium": α = VΛ^½x, whose Gaussian part is standard.
        target_acceptance: mean acceptance probability that dual averaging of the step size aims at in burn-in, one
            step size for all chains; frozen afterwards.
    """

    form: BlackJAXForm = "harmonium"
    target_acceptance: float = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "form", BlackJAXForm)
        check_setting(self, "target_acceptance", 0 < self.target_acceptance < 1, "a number between 0 and 1")

    @property
    def factor(self) -> Factor:
        return "harmonium" if self.form == "harmonium" else "precision"


@dataclass(frozen=True, kw_only=True)
class NoUTurn(AdaptiveStepMethod):
    """The no-U-turn sampler of Hoffman and Gelman, JMLR 2014, as BlackJAX has it (multinomial, iterative).

    The inverse mass is diagonal: variances of all chains in the windows of burn-in, shrunk as Stan does.

    Attributes:
        max_doublings: of a trajectory.
    """

    max_doublings: int = 10

    name: ClassVar[str] = "nuts"
    summary: ClassVar[str] = "BlackJAX's no-U-turn sampler on the Gaussian relaxation p(x)"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, "max_doublings", self.max_doublings >= 1, "at least 1")

    def program(self, backend: Backend) -> Program:
        """A trajectory of every chain a step; all wait for the longest."""
        from blackjax.mcmc import nuts

        kernel, limit = nuts.build_kernel(), self.max_doublings

        def move(
            key: Key, chain: HMCState, density: LogDensity, step: Array, scale: Array
        ) -> tuple[HMCState, Array, Array]:
            chain, info = kernel(key, chain, density, step, scale, limit)
            return chain, info.acceptance_rate, info.num_integration_steps

        return AdaptiveStepProgram(self, backend, nuts.init, move, adapts_mass=True).program()


@dataclass(frozen=True, kw_only=True)
class Langevin(AdaptiveStepMethod):
    """The Metropolis-adjusted Langevin algorithm of Roberts and Tweedie, Bernoulli 1996, as BlackJAX has it."""

    target_acceptance: float = 0.574

    name: ClassVar[str] = "mala"
    summary: ClassVar[str] = "BlackJAX's Langevin steps on the Gaussian relaxation p(x)"

    def program(self, backend: Backend) -> Program:
        """A step of every chain."""
        from blackjax.mcmc import mala

        kernel = mala.build_kernel()

        def move(
            key: Key, chain: MALAState, density: LogDensity, step: Array, scale: Array
        ) -> tuple[MALAState, Array, int]:
            # BlackJAX's step size is half of the squared leapfrog step; dual averaging and the first step use the
            # leapfrog step.
            chain, info = kernel(key, chain, density, 0.5 * step**2)
            return chain, info.acceptance_rate, 1

        return AdaptiveStepProgram(self, backend, mala.init, move, adapts_mass=False).program()


class Tuning(NamedTuple):
    """What burn-in adapts.

    step_size: one for all chains. scale: (N,) inverse mass. total, square: (N,) sums of positions and of their squares,
    of all chains, over the window.
    """

    step_size: StepSize
    scale: Array
    total: Array
    square: Array


class State(NamedTuple):
    """BlackJAX's states of the chains, (N, C) and (C,); accept, evaluations (C,) of the last step; settings."""

    chains: HMCState | MALAState
    accept: Array
    evaluations: Array
    tuning: Tuning


class AdaptiveStepProgram(BlackJAXProgram):
    """The program's functions. `move_chain`: (key, chain, density, step, scale) -> (chain, acceptance, evaluations)."""

    def __init__(
        self,
        method: AdaptiveStepMethod,
        backend: Backend,
        init_chain: InitChain,
        move_chain: MoveChain,
        *,
        adapts_mass: bool,
    ) -> None:
        super().__init__(backend)
        self.update_step_size, self.log_z = dual_averaging(backend.xp), method.log_z
        self.method, self.init_chain, self.move_chain, self.adapts_mass = method, init_chain, move_chain, adapts_mass

    def init(self, key: Key, t: RelaxedTables, start: Array) -> State:
        """x ~ p(x|s)."""
        x = self.draw_positions(key, t, start)
        chains = map_over_chains(
            lambda _, position: self.init_chain(position, self._log_density_of_chain(t)), key, x, x.shape[1]
        )
        none = self._xp.zeros_like(x[0, :])
        return State(chains, none, none, self._restart_tuning(t.first_step, self._xp.ones_like(x[:, 0]), 10.0))

    def step(self, key: Key, t: RelaxedTables, state: State) -> State:
        """One sample of each chain."""
        now, old = state.tuning, state.accept

        def move(key: Key, chain: HMCState | MALAState) -> tuple[HMCState | MALAState, Array, Array | int]:
            return self.move_chain(key, chain, self._log_density_of_chain(t), now.step_size.step, now.scale)

        chains, accept, evaluations = map_over_chains(move, key, state.chains, old.shape[0])
        return State(chains, self._xp.astype(accept, old.dtype), 0.0 * old + evaluations, now)

    def warm(self, key: Key, t: RelaxedTables, state: State) -> State:
        """A sample, then a step of dual averaging."""
        xp, state = self._xp, self.step(key, t, state)
        now, x = state.tuning, state.chains.position
        step_size = self.update_step_size(
            now.step_size, True, self.method.target_acceptance - xp.mean(state.accept), math.inf
        )
        total, square = now.total + xp.sum(x, axis=1), now.square + xp.sum(x * x, axis=1)
        return state._replace(tuning=Tuning(step_size, now.scale, total, square))

    def adapt(self, t: RelaxedTables, state: State, last: bool) -> State:
        """The inverse mass of a window; in the end the step size that is kept."""
        xp, now = self._xp, state.tuning
        step, count = final_step_size(xp, now.step_size), now.step_size.count
        if last:
            return state._replace(tuning=now._replace(step_size=now.step_size._replace(step=step)))
        if not self.adapts_mass:
            # One dual averaging over all of burn-in: without mass adaptation there is no reason to restart it.
            return state
        n = xp.maximum(count, xp.ones_like(count)) * state.accept.shape[0]
        variance = xp.maximum(now.square / n - (now.total / n) ** 2, xp.zeros_like(now.scale))
        # Stan's shrinkage towards 1e-3, by five draws' worth (Stan reference manual, adaptation of the metric).
        shrunk = n / (n + 5) * variance + 1e-3 * 5 / (n + 5)
        return state._replace(tuning=self._restart_tuning(step, xp.where(count > 0.0, shrunk, now.scale), 1.0))

    def observe(self, t: RelaxedTables, state: State) -> dict[str, Array]:
        """What `BlackJAXMethod.reductions` lists."""
        p = self.chain_means(t, state.chains.position)
        step = state.tuning.step_size.step + self._xp.zeros_like(state.accept)
        return {"p": p, "accept": state.accept, "evaluations": state.evaluations, "step_size": step}

    def _log_density_of_chain(self, t: RelaxedTables) -> LogDensity:
        return for_single_chain(lambda x: self.log_density(t, x))

    def _restart_tuning(self, step: Array, scale: Array, target_factor: float) -> Tuning:
        """Dual averaging from `step`, towards `target_factor` times as much: once settled, the little burn-in of short
        runs would not bring a larger one back."""
        zeros = self._xp.zeros_like(scale)
        return Tuning(restart_step_size(self._xp, step, target_factor), scale, zeros, zeros)

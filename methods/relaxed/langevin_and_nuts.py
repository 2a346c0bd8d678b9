"""BlackJAX's NUTS and MALA on the Gaussian relaxation, with step sizes that burn-in adapts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from spinbench.api import Array, Backend, Key, Program
from spinbench.errors import SpinbenchError
from spinbench.methods.relaxed import family
from spinbench.methods.relaxed.outside import Density, Outside, Tables, every_chain, of_one

OutsideForm = Literal["identity", "harmonium"]


@dataclass(frozen=True)
class Stepping(Outside):
    """Settings of both.

    Attributes:
        form: coordinates, as of `dhmc`: "identity": x = α; "harmonium": α = VΛ^½x, whose Gaussian part is standard.
        target_acceptance: mean acceptance probability that dual averaging of the step size aims at in burn-in, one
            step size for all chains; frozen afterwards.
    """

    form: OutsideForm = "harmonium"
    target_acceptance: float = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        family.check_choice("form", self.form, OutsideForm)
        if not 0 < self.target_acceptance < 1:
            raise SpinbenchError(
                f"target_acceptance={self.target_acceptance} was given; a number between 0 and 1 is needed"
            )

    @property
    def whitened(self) -> bool:
        return self.form == "harmonium"


@dataclass(frozen=True)
class NoUTurn(Stepping):
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
        if self.max_doublings < 1:
            raise SpinbenchError(f"max_doublings={self.max_doublings} was given; at least 1 is needed")

    def program(self, backend: Backend) -> Program:
        """A trajectory of every chain a step; all wait for the longest."""
        from blackjax.mcmc import nuts

        kernel, limit = nuts.build_kernel(), self.max_doublings

        def move(key: Any, chain: Any, density: Any, step: Any, scale: Any) -> tuple[Any, Any, Any]:
            chain, info = kernel(key, chain, density, step, scale, limit)
            return chain, info.acceptance_rate, info.num_integration_steps

        return Steps(self, backend, nuts.init, move, scaled=True).program()


@dataclass(frozen=True)
class Langevin(Stepping):
    """The Metropolis-adjusted Langevin algorithm of Roberts and Tweedie, Bernoulli 1996, as BlackJAX has it."""

    target_acceptance: float = 0.574

    name: ClassVar[str] = "mala"
    summary: ClassVar[str] = "BlackJAX's Langevin steps on the Gaussian relaxation p(x)"

    def program(self, backend: Backend) -> Program:
        """A step of every chain."""
        from blackjax.mcmc import mala

        kernel = mala.build_kernel()

        def move(key: Any, chain: Any, density: Any, step: Any, scale: Any) -> tuple[Any, Any, int]:
            # BlackJAX's step size is half of the square of the leapfrog step
            chain, info = kernel(key, chain, density, 0.5 * step**2)
            return chain, info.acceptance_rate, 1

        return Steps(self, backend, mala.init, move, scaled=False).program()


class Tuning(NamedTuple):
    """What burn-in adapts.

    step: () used now. averaging: BlackJAX's dual averaging. scale: (N,) inverse mass. count: () of steps since the last
    window. total, square: (N,) sums of positions and of their squares, of all chains.
    """

    step: Array
    averaging: Any
    scale: Array
    count: Array
    total: Array
    square: Array


class State(NamedTuple):
    """BlackJAX's states of the chains, (N, C) and (C,); accept, evaluations (C,) of the last step; settings."""

    chains: Any
    accept: Array
    evaluations: Array
    tuning: Tuning


class Steps:
    """The program's functions. `move`: (key, chain, density, step, scale) -> (chain, acceptance, evaluations)."""

    def __init__(self, method: Stepping, backend: Backend, begin: Any, move: Any, *, scaled: bool) -> None:
        from blackjax.adaptation.step_size import dual_averaging_adaptation

        self.method, self.backend, self.xp = method, backend, backend.xp
        self.density, self.begin, self.move, self.scaled = Density(backend), begin, move, scaled
        self.average = dual_averaging_adaptation(method.target_acceptance)

    def program(self) -> Program:
        return Program(self.init, self.step, self.observe, warm=self.warm, adapt=self.adapt)

    def init(self, key: Key, t: Tables, start: Array) -> State:
        """x ~ p(x|s)."""
        x = self.density.draw(key, t, start)
        chains = every_chain(lambda _, one: self.begin(one, self._law(t)), key, x, x.shape[1])
        none = self.xp.zeros_like(x[0, :])
        return State(chains, none, none, self._restart(t.first_step, self.xp.ones_like(x[:, 0]), 10.0))

    def step(self, key: Key, t: Tables, state: State) -> State:
        """One sample of each chain."""
        now, old = state.tuning, state.accept

        def move(key: Any, chain: Any) -> Any:
            return self.move(key, chain, self._law(t), now.step, now.scale)

        chains, accept, evaluations = every_chain(move, key, state.chains, old.shape[0])
        return State(chains, self.xp.astype(accept, old.dtype), 0.0 * old + evaluations, now)

    def warm(self, key: Key, t: Tables, state: State) -> State:
        """A sample, then a step of dual averaging."""
        xp, state = self.xp, self.step(key, t, state)
        now, x = state.tuning, state.chains.position
        averaging = self.average[1](now.averaging, xp.mean(state.accept))
        averaging = type(averaging)(*(xp.astype(a, b.dtype) for a, b in zip(averaging, now.averaging, strict=True)))
        total, square = now.total + xp.sum(x, axis=1), now.square + xp.sum(x * x, axis=1)
        tuned = Tuning(xp.exp(averaging.log_step_size), averaging, now.scale, now.count + 1, total, square)
        return state._replace(tuning=tuned)

    def adapt(self, t: Tables, state: State, last: bool) -> State:
        """The inverse mass of a window; in the end the step size that is kept."""
        xp, now = self.xp, state.tuning
        seen = now.count > 0
        settled = xp.where(seen, self.average[2](now.averaging), now.step)
        if last:
            return state._replace(tuning=now._replace(step=settled))
        if not self.scaled:
            return state  # one dual averaging over all of burn-in
        n = xp.maximum(now.count, xp.ones_like(now.count)) * state.accept.shape[0]
        variance = xp.maximum(now.square / n - (now.total / n) ** 2, xp.zeros_like(now.scale))
        shrunk = n / (n + 5) * variance + 1e-3 * 5 / (n + 5)
        scale = xp.where(seen, shrunk, now.scale)
        return state._replace(tuning=self._restart(settled, scale, 1.0))

    def observe(self, t: Tables, state: State) -> dict[str, Array]:
        """What `Outside.reductions` lists."""
        seen = self.density.seen(t, self.density.fields(t, state.chains.position), self.method.log_z)
        step = state.tuning.step + self.xp.zeros_like(state.accept)
        return {**seen, "accept": state.accept, "evaluations": state.evaluations, "step_size": step}

    def _law(self, t: Tables) -> Any:
        return of_one(lambda x: self.density.log_density(t, x))

    def _restart(self, step: Array, scale: Array, push: float) -> Tuning:
        """Dual averaging from `step`, towards `push` times as much: once settled, the little burn-in of short runs
        would not bring a larger one back."""
        xp, zero = self.xp, self.xp.zeros_like(step)
        averaging = self.average[0](step * (push / 10))  # which aims ten times as high
        averaging = type(averaging)(*(zero + part for part in averaging))
        averaging = averaging._replace(log_step_size=xp.log(step), log_step_size_avg=xp.log(step))
        return Tuning(step + zero, averaging, scale, zero, xp.zeros_like(scale), xp.zeros_like(scale))

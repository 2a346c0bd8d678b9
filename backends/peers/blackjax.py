"""BlackJAX: its HMC kernel, the leapfrog steps, whose number is fixed, unrolled in one call of its integrator.

That is the fastest form that we could make: XLA fuses unrolled steps. As it is documented, with a loop over the steps
and the gradient by automatic differentiation, it takes twice as long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from spinbench.api import BackendProfile
from spinbench.backends.peers import library, trajectories
from spinbench.methods.relaxed.dhmc import DHMC

if TYPE_CHECKING:
    import jax
    from blackjax.adaptation.step_size import DualAveragingAdaptationState
    from blackjax.mcmc.hmc import HMCState
    from blackjax.mcmc.integrators import Integrator, IntegratorState
    from blackjax.mcmc.metrics import KineticEnergy


class BlackJAXBackend(library.JaxLibraryBackend):
    """BlackJAX."""

    name = "blackjax"
    requires: ClassVar[tuple[str, ...]] = ("blackjax", "jax")
    profile = BackendProfile(packages=("blackjax",))


class BlackJAXDHMC(trajectories.LibraryTrajectories["HMCState", "DualAveragingAdaptationState"]):
    """`blackjax.hmc`."""

    def moves(
        self, method: DHMC, density: trajectories.LogDensity, n: int
    ) -> trajectories.Moves[HMCState, DualAveragingAdaptationState]:
        import blackjax
        import jax.numpy as jnp
        from blackjax.adaptation.step_size import dual_averaging_adaptation

        kernel = blackjax.hmc.build_kernel(integrator=unroll(method.leapfrog_steps))
        begin, update, final = dual_averaging_adaptation(method.target_acceptance)
        unit = jnp.ones(n, self._real)

        def move(key: jax.Array, chain: HMCState, step: jax.Array) -> tuple[HMCState, jax.Array]:
            chain, info = kernel(key, chain, density, step, unit, 1)
            return chain, info.acceptance_rate

        def current(average: DualAveragingAdaptationState) -> tuple[jax.Array, jax.Array]:
            real = unit.dtype
            return jnp.exp(average.log_step_size).astype(real), jnp.asarray(final(average), real)

        return trajectories.Moves(
            begin=lambda position: blackjax.hmc.init(position, density),
            move=move,
            position=lambda chain: chain.position,
            averaging=(begin, update, current),
        )


def unroll(steps: int) -> Callable[[trajectories.LogDensity, KineticEnergy], Integrator]:
    """Of BlackJAX's integrator so many steps as one."""
    from blackjax.mcmc.integrators import velocity_verlet

    def integrator(log_density: trajectories.LogDensity, kinetic_energy: KineticEnergy) -> Integrator:
        step = velocity_verlet(log_density, kinetic_energy)

        def many(state: IntegratorState, step_size: jax.Array) -> IntegratorState:
            for _ in range(steps):
                state = step(state, step_size)
            return state

        return many

    return integrator

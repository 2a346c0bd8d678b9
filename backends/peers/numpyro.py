"""NumPyro: the sample kernel of its HMC, in one compiled loop.

`MCMC` with chain_method="vectorized", which its documentation recommends, runs the same kernel, but keeps all positions
and takes longer for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from spinbench.api import BackendProfile
from spinbench.backends.peers import library, trajectories
from spinbench.methods.relaxed.dhmc import DHMC

if TYPE_CHECKING:
    import jax
    from numpyro.infer.hmc import HMCState


class NumPyroBackend(library.JaxLibraryBackend):
    """NumPyro."""

    name = "numpyro"
    requires: ClassVar[tuple[str, ...]] = ("numpyro", "jax")
    profile = BackendProfile(packages=("numpyro",))


class NumPyroDHMC(trajectories.LibraryTrajectories["HMCState", "tuple[jax.Array, ...]"]):
    """`numpyro.infer.hmc.hmc`."""

    def moves(
        self, method: DHMC, density: trajectories.LogDensity, n: int
    ) -> trajectories.Moves[HMCState, tuple[jax.Array, ...]]:
        import jax.numpy as jnp
        from numpyro.infer.hmc import hmc
        from numpyro.infer.hmc_util import dual_averaging

        start, sample = hmc(potential_fn=lambda x: -density(x), algo="HMC")
        begin, update = dual_averaging()
        real, target = self._real, method.target_acceptance

        def begin_chain(position: jax.Array) -> HMCState:
            fixed: dict[str, object] = {"adapt_step_size": False, "adapt_mass_matrix": False, "trajectory_length": None}
            return start(position, 0, num_steps=method.leapfrog_steps, inverse_mass_matrix=jnp.ones(n, real), **fixed)

        def move(key: jax.Array, chain: HMCState, step: jax.Array) -> tuple[HMCState, jax.Array]:
            chain = chain._replace(rng_key=key, adapt_state=chain.adapt_state._replace(step_size=step))
            chain = sample(chain)
            return chain, chain.accept_prob

        return trajectories.Moves(
            begin=begin_chain,
            move=move,
            position=lambda chain: chain.z,
            averaging=(
                lambda step: begin(jnp.log(10 * step)),
                lambda average, accepted: update(target - accepted, average),
                lambda average: (jnp.exp(average[0]).astype(real), jnp.exp(average[1]).astype(real)),
            ),
        )

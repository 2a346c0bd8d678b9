"""blackjax and numpyro: Hamiltonian Monte Carlo on the same relaxed density, with the same step size and unit mass.

log p(x) = -½ xᵀ Q⁻¹ x + Σ softplus(x_i + b_i), the precision matrix given. blackjax runs twice. As it is documented:
the kernel in `lax.scan` under `jax.jit`, `jax.vmap` over chains, the gradient by automatic differentiation; marginals
are accumulated in the scan's carry, which is faster than keeping all positions. And as fast as we could make it: the
gradient in closed form, since differentiating xᵀ Q⁻¹ x takes a second product, and the leapfrog steps, whose number is
fixed, unrolled in one call of the integrator, which XLA fuses; for one chain with JAX's rbg generator, which is faster
there. numpyro: MCMC over the potential with the closed gradient and chain_method="vectorized"; it keeps all positions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from comparison.answers import Answer
from comparison.contender import Contender, counted, need
from comparison.relaxed import Density
from spinbench.api import Precision


def _scope(precision: Precision) -> contextlib.AbstractContextManager[Any]:
    import jax

    scope: contextlib.AbstractContextManager[Any] = jax.enable_x64(precision == "float64")
    return scope


def _log_density(density: Density, precision: Precision) -> Callable[[Any], Any]:
    """By automatic differentiation."""
    import jax
    import jax.numpy as jnp

    Q, b = jnp.asarray(density.precision, precision), jnp.asarray(density.bias, precision)
    return lambda x: -0.5 * x @ (Q @ x) + jax.nn.softplus(x + b).sum()


def _log_density_closed(density: Density, precision: Precision) -> Callable[[Any], Any]:
    """One product for the value and the gradient together."""
    import jax
    import jax.numpy as jnp

    Q, b = jnp.asarray(density.precision, precision), jnp.asarray(density.bias, precision)
    value = jax.custom_vjp(_log_density(density, precision))

    def forward(x: Any) -> tuple[Any, Any]:
        y, u = Q @ x, x + b
        return -0.5 * x @ y + jax.nn.softplus(u).sum(), jax.nn.sigmoid(u) - y

    value.defvjp(forward, lambda gradient, scale: (scale * gradient,))
    return value


def _unrolled(steps: int) -> Callable[[Any, Any], Any]:
    """Of blackjax's integrator so many steps as one."""
    from blackjax.mcmc.integrators import velocity_verlet

    def integrator(log_density: Any, kinetic_energy: Any) -> Any:
        one = velocity_verlet(log_density, kinetic_energy)

        def many(state: Any, step_size: Any) -> Any:
            for _ in range(steps):
                state = one(state, step_size)
            return state

        return many

    return integrator


def blackjax(
    density: Density, *, chains: int, samples: int, precision: Precision, burn_in: int = 500, documented: bool = False
) -> Contender:
    """All chains in one compiled call of `samples` steps; burn-in runs before the clock.

    Args:
        documented: as in its documentation, else as fast as we could make it.
    """
    need("blackjax")
    import blackjax as library
    import jax
    import jax.numpy as jnp

    n = density.bias.size
    with _scope(precision):
        b = jnp.asarray(density.bias, precision)
        unit = jnp.ones(n, precision)
        if documented:
            kernel = library.hmc(_log_density(density, precision), density.step, unit, density.leapfrog)
        else:
            closed, leaps = _log_density_closed(density, precision), _unrolled(density.leapfrog)
            kernel = library.hmc(closed, density.step, unit, 1, integrator=leaps)
    generator = "rbg" if chains == 1 and not documented else None

    def chain(key: Any, state: Any, steps: int) -> Any:
        def one(carry: Any, k: Any) -> Any:
            state, total = carry
            state, _ = kernel.step(k, state)
            return (state, total + jax.nn.sigmoid(state.position + b)), None

        carry, _ = jax.lax.scan(one, (state, jnp.zeros(n, precision)), jax.random.split(key, steps))
        return carry

    def advance(steps: int) -> Any:
        def run(key: Any, states: Any) -> Any:
            if chains == 1:
                return chain(key, states, steps)
            return jax.vmap(lambda k, s: chain(k, s, steps))(jax.random.split(key, chains), states)

        return jax.jit(run)

    warm, run = advance(burn_in), advance(samples)

    def prepare(number: int) -> Any:
        with _scope(precision):
            start = jnp.zeros(n if chains == 1 else (chains, n), precision)
            states = kernel.init(start) if chains == 1 else jax.vmap(kernel.init)(start)
            first, second = jax.random.split(jax.random.key(number, impl=generator))
            return second, jax.block_until_ready(warm(first, states)[0])

    def call(given: Any) -> Any:
        with _scope(precision):
            return jax.block_until_ready(run(*given)[1])

    def answer(sums: Any) -> Answer:
        mean = np.asarray(sums, dtype=np.float64) / samples
        return Answer(mean if chains == 1 else mean.mean(axis=0))

    form = "automatic gradient" if documented else "closed gradient, leapfrog unrolled"
    return Contender(
        library="blackjax, documented" if documented else "blackjax", distribution="blackjax", precision=precision,
        asked=f"hmc, {counted(chains, 'chain')}, {density.leapfrog} steps of {density.step:.3g}, {form}",
        work=float(chains) * samples, prepare=prepare, call=call, answer=answer, compiles=True,
    )  # fmt: skip


def numpyro(density: Density, *, chains: int, samples: int, precision: Precision) -> Contender:
    """One MCMC object, whose runs go on from `post_warmup_state`, where the one before ended; the first is burn-in."""
    need("numpyro")
    import jax
    import jax.numpy as jnp
    from numpyro.infer import HMC, MCMC

    n = density.bias.size
    with _scope(precision):
        log_density = _log_density_closed(density, precision)
    kernel = HMC(
        potential_fn=lambda x: -log_density(x),
        step_size=density.step,
        num_steps=density.leapfrog,
        trajectory_length=None,
        adapt_step_size=False,
        adapt_mass_matrix=False,
    )
    sampler = MCMC(
        kernel,
        num_warmup=0,
        num_samples=samples,
        num_chains=chains,
        chain_method="vectorized" if chains > 1 else "sequential",
        progress_bar=False,
        jit_model_args=False,
    )

    def prepare(number: int) -> Any:
        with _scope(precision):
            if number == 0:
                start = jnp.zeros((chains, n) if chains > 1 else n, precision)
                sampler.run(jax.random.PRNGKey(0), init_params=start)
            sampler.post_warmup_state = sampler.last_state
            return sampler.post_warmup_state.rng_key

    def call(key: Any) -> Any:
        with _scope(precision):
            sampler.run(key)
            return jax.block_until_ready(sampler.get_samples())

    def answer(positions: Any) -> Answer:
        u = np.asarray(positions, dtype=np.float64) + density.bias
        return Answer((1 / (1 + np.exp(-u))).mean(axis=0))

    return Contender(
        library="numpyro",
        distribution="numpyro",
        precision=precision,
        asked=f"HMC, {counted(chains, 'chain')}, {density.leapfrog} steps of {density.step:.3g}, positions kept",
        work=float(chains) * samples,
        prepare=prepare,
        call=call,
        answer=answer,
        compiles=True,
    )

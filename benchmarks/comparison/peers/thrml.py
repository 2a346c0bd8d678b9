"""thrml: block Gibbs over the colours of an Ising model, compiled by JAX.

As in its documentation: `sample_states` under `jax.jit`, `jax.vmap` over chains. States are kept every `thin` sweeps.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from comparison.answers import Answer
from comparison.contender import Contender, counted, need
from comparison.problems import colours, spins
from spinbench.models import PairwiseModel


def gibbs(model: PairwiseModel, *, chains: int, samples: int, thin: int, burn_in: int = 300) -> Contender:
    """`samples` states kept, `thin` sweeps apart; burn-in counts as work, since it runs in the same call."""
    need("thrml")
    import jax
    import jax.numpy as jnp
    from thrml import Block, SamplingSchedule, SpinNode, sample_states
    from thrml.models import IsingEBM, IsingSamplingProgram, hinton_init

    since = time.process_time()
    h, edges, J = spins(model)
    nodes = [SpinNode() for _ in range(model.num_variables)]
    pairs = [(nodes[i], nodes[j]) for i, j in edges]
    ising = IsingEBM(nodes, pairs, jnp.asarray(h, "float32"), jnp.asarray(J, "float32"), jnp.array(1.0))
    blocks = [Block([nodes[i] for i in colour]) for colour in colours(model)]
    program = IsingSamplingProgram(ising, blocks, [])
    schedule = SamplingSchedule(n_warmup=burn_in, n_samples=samples, steps_per_sample=thin)
    built = time.process_time() - since

    @jax.jit
    def run(key: Any) -> Any:
        first, second = jax.random.split(key)
        start = hinton_init(first, ising, blocks, (chains,))
        return jax.vmap(lambda k, s: sample_states(k, program, schedule, s, [], [Block(nodes)])[0])(
            jax.random.split(second, chains), start
        )

    return Contender(
        library="thrml",
        distribution="thrml",
        precision="float32",
        asked=f"{counted(chains, 'chain')}, a state kept every {thin} sweeps",
        work=float(chains) * (burn_in + (samples - 1) * thin) * model.num_variables,
        prepare=jax.random.key,
        call=lambda key: jax.block_until_ready(run(key)),
        answer=lambda states: Answer(np.asarray(states).mean(axis=(0, 1), dtype=np.float64)),
        build_seconds=built,
        compiles=True,
    )

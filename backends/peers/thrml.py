"""thrml: block Gibbs over the colours of an Ising model, compiled by JAX.

As in its documentation: its sweep over blocks inside a loop under `jax.jit`, `jax.vmap` over chains. The keys of a
sweep are folded from its number, so that batches of any length run the code that was compiled once; states that are
summed are summed in that loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from spinbench.api import Backend, BackendProfile, Index, Model, PairwiseModel, States
from spinbench.backends.peers import chains, library
from spinbench.mathematics.graphs.colouring import colouring
from spinbench.methods.gibbs import gibbs, sweeps

if TYPE_CHECKING:
    from jax import Array as JaxArray

    # States of the variables of each colour, (C, n).
    Blocks = list[JaxArray]


class ThrmlBackend(library.JaxLibraryBackend):
    """thrml, with weights in the precision that is asked for."""

    name = "thrml"
    requires: ClassVar[tuple[str, ...]] = ("thrml", "jax")
    profile = BackendProfile(packages=("thrml",))


class ThrmlGibbs(library.OnJax, chains.LibraryChains[Any]):
    """Sweeps colour by colour."""

    compiles = True
    _tables: sweeps.Tables
    allowed: ClassVar[Mapping[str, tuple[object, ...]]] = {
        "scan": ("chromatic",),
        "sample": ("sweep",),
        "log_z": ("auto", "chib_bar", "none"),
        "precision_bits": (0,),
        "threads": (1,),
    }

    @classmethod
    def refuses(cls, method: chains.SweepMethod, backend: Backend, model: Model) -> str:
        why = super().refuses(method, backend, model)
        return why or (
            "" if isinstance(model, PairwiseModel) and len(model.edges) else "thrml takes models with couplings"
        )

    def __init__(self, method: gibbs.Gibbs, backend: Backend, model: PairwiseModel, tables: sweeps.Tables) -> None:
        super().__init__(method, backend, model, tables)
        self.notes = (chains.THINNED,) if self.averaged else ()
        if method.log_z == "auto":
            self.notes = (*self.notes, chains.ONE_SIDED)
        from thrml import Block, SpinNode
        from thrml.block_sampling import sample_blocks
        from thrml.models import IsingEBM, IsingSamplingProgram

        jax = self.load_jax(backend)
        jnp = jax.numpy
        form, n = library.spin_form(model), model.num_variables
        colour = np.asarray(colouring(n, model.edges))
        members = [np.flatnonzero(colour == c) for c in range(int(colour.max()) + 1)]
        self.order, nodes = np.concatenate(members), [SpinNode() for _ in range(n)]
        self._cuts = np.cumsum([len(part) for part in members])[:-1]
        with self._scope():
            h, J, beta = (jnp.asarray(values, backend.precision) for values in (form.h, form.J, 1.0))
            ising = IsingEBM(nodes, [(nodes[i], nodes[j]) for i, j in form.edges], h, J, beta)
            program = IsingSamplingProgram(ising, [Block([nodes[v] for v in part]) for part in members], [])
            none = [sampler.init() for sampler in program.samplers]

        def chain(key: JaxArray, first: Index, steps: Index, blocks: Blocks) -> tuple[Blocks, Blocks]:
            def body(i: Index, carry: tuple[Blocks, Blocks]) -> tuple[Blocks, Blocks]:
                blocks, sums = carry
                blocks, _ = sample_blocks(jax.random.fold_in(key, i), list(blocks), [], program, list(none))
                return blocks, sums if self.averaged else [s + b for s, b in zip(sums, blocks, strict=True)]

            sums = []
            if not self.averaged:
                sums = [jnp.zeros(b.shape, jnp.int32) for b in blocks]
            end: tuple[Blocks, Blocks] = jax.lax.fori_loop(first, first + steps, body, (blocks, sums))
            return end

        self._run = jax.jit(jax.vmap(chain, in_axes=(0, None, None, 0)))

    def init(self, seed: int, start: States) -> chains.Chains[Any]:
        with self._scope():
            keys = self._jax.random.split(self._jax.random.key(seed % 2**63), start.shape[1])
        return chains.Chains(seed, 0, (keys, self.begin(start[self.order])))

    def advance(self, state: chains.Chains[Any], steps: int) -> tuple[chains.Chains[Any], dict[str, np.ndarray]]:
        state, sums = self._sweep_and_sum_blocks(state, steps)
        if self.averaged:
            return state, {"p": steps * self._statistics(state)}
        sums_by_block = np.concatenate([np.asarray(part) for part in sums], axis=1).T.astype(np.float64)
        by_number = np.empty_like(sums_by_block)
        by_number[self.order] = sums_by_block
        return state, {"s": by_number[self._tables.order]}

    def begin(self, states: np.ndarray) -> Blocks:
        return [self._jax.numpy.asarray(part.T > 0) for part in np.split(states, self._cuts)]

    def move(self, library_state: tuple[JaxArray, Blocks], steps: int, seed: int, beta: float) -> NoReturn:
        raise AssertionError("steps have numbers of their own")

    def read(self, library_state: tuple[JaxArray, Blocks]) -> np.ndarray:
        return np.concatenate([np.asarray(block) for block in library_state[1]], axis=1).T.astype(np.int8)

    def _advance_library(self, state: chains.Chains[Any], steps: int, beta: float = 1.0) -> chains.Chains[Any]:
        return self._sweep_and_sum_blocks(state, steps)[0]

    def _sweep_and_sum_blocks(self, state: chains.Chains[Any], steps: int) -> tuple[chains.Chains[Any], Blocks]:
        keys, blocks = state.library_state
        with self._scope():
            blocks, sums = self._jax.block_until_ready(self._run(keys, state.step, steps, blocks))
        state.library_state, state.step = (keys, blocks), state.step + steps
        return state, sums

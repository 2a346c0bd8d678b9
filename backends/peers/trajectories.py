"""Kernels of Hamiltonian Monte Carlo in libraries on JAX: their step in one compiled loop, for all chains together.

All get the same density, log p(x) = -½ xᵀQ⁻¹x + Σ log(1 + exp(x_i + b_i)) with A = I, its gradient in closed form,
which takes one product for the value and the gradient together where automatic differentiation takes two. Marginals
are summed in the loop. The key of a step is folded from its number, so that batches change nothing; the step size is
adapted by the library's own dual averaging to the mean acceptance of all chains.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from spinbench.api import Backend, Index, Kernel, Model, PairwiseModel, States
from spinbench.backends.peers.library import OnJax, setting_refusal
from spinbench.foundation.trees import Tree
from spinbench.methods.relaxed.dhmc import DHMC
from spinbench.methods.relaxed.tables import RelaxedTables

if TYPE_CHECKING:
    from jax import Array as JaxArray

    LogDensity = Callable[[JaxArray], JaxArray]


Chain = TypeVar("Chain")
"""A library's state of a chain, or of all."""
Average = TypeVar("Average")
"""A library's state of dual averaging."""


class Moves(NamedTuple, Generic[Chain, Average]):
    """A library's functions of one chain, to be compiled.

    Attributes:
        begin: of a position (N,), to the chain.
        move: (key, chain, step size) -> (chain, acceptance probability).
        position: of a chain.
        averaging: begin (step size), update (state, acceptance) and current (state) of dual averaging; the last gives
            the step size to go on with and the one to keep.
    """

    begin: Callable[[JaxArray], Chain]
    move: Callable[[JaxArray, Chain, JaxArray], tuple[Chain, JaxArray]]
    position: Callable[[Chain], JaxArray]
    averaging: tuple[
        Callable[[JaxArray], Average],
        Callable[[Average, JaxArray], Average],
        Callable[[Average], tuple[JaxArray, JaxArray]],
    ]


@dataclass
class Trajectories(Generic[Chain, Average]):
    """What a run carries: keys of chains, steps so far, the chains, dual averaging, and the step size in use."""

    keys: JaxArray
    step: int
    chains: Chain
    average: Average
    step_size: JaxArray
    adapted: bool = False


class LibraryTrajectories(OnJax, Kernel[RelaxedTables, Trajectories[Chain, Average]], Generic[Chain, Average]):
    """`dhmc` with A = I and unit mass."""

    allowed: ClassVar[Mapping[str, tuple[object, ...]]] = {
        "form": ("identity",),
        "jitter": (None, 0.0),
        "log_z": ("bridge", "mirrored", "mirrored_in_sample", "none"),
    }

    @classmethod
    def refuses(cls, method: DHMC, backend: Backend, model: Model) -> str:
        why = setting_refusal(backend, method, cls.allowed)
        if isinstance(model, PairwiseModel) and model.groups:
            return why or f"{backend.name} takes binary variables; {model.name} has 1-of-K groups"
        return why

    def __init__(self, method: DHMC, backend: Backend, model: PairwiseModel, tables: RelaxedTables) -> None:
        jax = self.load_jax(backend)
        jnp = jax.numpy
        assert tables.root is not None
        assert tables.precision is not None
        self._method, self._real = method, backend.precision
        self._root, self._first = tables.root, float(tables.first_step)
        with self._scope():
            self._bias = jnp.asarray(tables.bias, self._real)
            density = self._density(jnp.asarray(tables.precision, self._real))
            moves = self._moves = self.moves(method, density, len(tables.bias))
        _, update, current = moves.averaging

        def one(keys: JaxArray, i: Index, chains: Chain, step: JaxArray) -> tuple[Chain, JaxArray]:
            step_keys = jax.vmap(jax.random.fold_in, (0, None))(keys, i)
            moved: tuple[Chain, JaxArray] = jax.vmap(moves.move, (0, 0, None))(step_keys, chains, step)
            return moved

        def warm_chains(
            keys: JaxArray, first: Index, steps: Index, chains: Chain, average: Average
        ) -> tuple[Chain, Average]:
            def body(i: Index, carry: tuple[Chain, Average]) -> tuple[Chain, Average]:
                chains, accepted = one(keys, i, carry[0], current(carry[1])[0])
                return chains, update(carry[1], accepted.mean())

            end: tuple[Chain, Average] = jax.lax.fori_loop(first, first + steps, body, (chains, average))
            return strip_weak_types(end)

        def sample_chains(
            keys: JaxArray, first: Index, steps: Index, chains: Chain, step: JaxArray
        ) -> tuple[Chain, JaxArray, JaxArray]:
            def body(i: Index, carry: tuple[Chain, JaxArray, JaxArray]) -> tuple[Chain, JaxArray, JaxArray]:
                chains, accepted = one(keys, i, carry[0], step)
                means = jax.nn.sigmoid(jax.vmap(moves.position)(chains) + self._bias)
                return chains, carry[1] + means, carry[2] + accepted

            none = jnp.zeros((len(keys), len(self._bias)), self._real), jnp.zeros(len(keys), self._real)
            end: tuple[Chain, JaxArray, JaxArray] = jax.lax.fori_loop(first, first + steps, body, (chains, *none))
            return strip_weak_types(end)

        def strip_weak_types(tree: Tree) -> Tree:
            """Of types that are no weak ones, for which the loops would be compiled again."""
            strong: Tree = jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, jnp.asarray(leaf).dtype), tree)
            return strong

        self._warmed, self._sampled = jax.jit(warm_chains), jax.jit(sample_chains)
        self._begin = jax.jit(lambda positions: strip_weak_types(jax.vmap(moves.begin)(positions)))
        self._restart = jax.jit(lambda step: strip_weak_types(moves.averaging[0](step)))
        self._current = jax.jit(lambda average: strip_weak_types(current(average)))

    @abstractmethod
    def moves(self, method: DHMC, density: LogDensity, n: int) -> Moves[Chain, Average]:
        """The library's step for a log density of N numbers."""

    def init(self, seed: int, start: States) -> Trajectories[Chain, Average]:
        noise = np.random.default_rng([seed, 1]).standard_normal(start.shape)
        positions = (self._root @ (self._root.T @ start.astype(np.float64) + noise)).T  # x ~ p(x|s)
        with self._scope():
            keys = self._jax.random.split(self._jax.random.key(seed % 2**63), start.shape[1])
            step = self._jax.numpy.asarray(self._first, self._real)
            chains = self._begin(self._jax.numpy.asarray(positions, self._real))
            return Trajectories(keys, 0, chains, self._restart(step), step)

    def warm(self, state: Trajectories[Chain, Average], steps: int) -> Trajectories[Chain, Average]:
        if not steps:
            return state
        if not self._method.adapts:
            return self.advance(state, steps)[0]
        with self._scope():
            arguments = state.keys, state.step, steps, state.chains, state.average
            state.chains, state.average = self._jax.block_until_ready(self._warmed(*arguments))
            state.step_size = self._current(state.average)[0]
        state.step, state.adapted = state.step + steps, True
        return state

    def adapt(self, state: Trajectories[Chain, Average], last: bool) -> Trajectories[Chain, Average]:
        if last and state.adapted:
            with self._scope():
                state.step_size = self._current(state.average)[1]
        return state

    def advance(
        self, state: Trajectories[Chain, Average], steps: int
    ) -> tuple[Trajectories[Chain, Average], dict[str, np.ndarray]]:
        with self._scope():
            arguments = state.keys, state.step, steps, state.chains, state.step_size
            state.chains, p, accepted = self._jax.block_until_ready(self._sampled(*arguments))
        state.step += steps
        step_size = np.full(len(p), state.step_size)
        return state, {"p": np.asarray(p).T, "accept": np.asarray(accepted), "step_size": step_size}

    def look(self, state: Trajectories[Chain, Average]) -> dict[str, np.ndarray]:
        with self._scope():
            alpha = np.asarray(self._jax.vmap(self._moves.position)(state.chains)).T
        return {} if self._method.log_z == "none" else {"alpha": alpha}

    def _density(self, precision: JaxArray) -> LogDensity:
        jax, b = self._jax, self._bias
        value: Any = jax.custom_vjp(lambda x: -0.5 * x @ (precision @ x) + jax.nn.softplus(x + b).sum())

        def forward(x: JaxArray) -> tuple[JaxArray, JaxArray]:
            y, u = precision @ x, x + b
            return -0.5 * x @ y + jax.nn.softplus(u).sum(), jax.nn.sigmoid(u) - y

        value.defvjp(forward, lambda gradient, scale: (scale * gradient,))
        closed: LogDensity = value
        return closed

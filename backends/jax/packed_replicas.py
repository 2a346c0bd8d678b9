"""The kernels pt.jax and smc.jax: the methods' programs over replicas whose sweeps are packed, 32 to a word.

Between sweeps a state is a byte, so that programs gather and resample replicas as they do elsewhere. For a sweep those
of one temperature are brought together, and share their words' thresholds: temperatures move, and states stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from spinbench.api import Array, Backend, Key, Model, Program, to_pairwise
from spinbench.api.kernel import ProgramKernel
from spinbench.backends.jax import packed_sweeps as packed
from spinbench.backends.jax import random
from spinbench.backends.jax.packed_layout import WORD_BITS, Colour, build_colours, packing_refusal
from spinbench.methods.population.program import Tables as PopulationTables
from spinbench.methods.population.smc import Annealed
from spinbench.methods.tempering.program import Tables as LadderTables
from spinbench.methods.tempering.pt import ParallelTempering, is_binary_pairwise
from spinbench.methods.tempering.replicas import PairTables

Tree = TypeVar("Tree")
barrier: Callable[[Tree], Tree] = jax.lax.optimization_barrier


class PackedTables(NamedTuple):
    """What is swept.

    Attributes:
        order: (N,) variable of each row.
        colours: of the rows.
        temperatures: (T,) zeros; T different temperatures have as many replicas each.
    """

    order: Array
    colours: tuple[Colour, ...]
    temperatures: Array

    def over(self, backend: Backend) -> PackedReplicas:
        """What sweeps them."""
        return PackedReplicas(backend)


class PackedReplicas:
    """States x (N, C) uint8 of rows; see `methods.tempering.program.Replicas`."""

    def __init__(self, backend: Backend) -> None:
        self._real = backend.real

    def arrange_states(self, t: PackedTables, start: Array) -> Array:
        """From states of the variables (N, C)."""
        return jnp.take(start, t.order, axis=0).astype(jnp.uint8)

    def states_by_variable(self, t: PackedTables, x: Array) -> Array:
        """(N, C), variable by variable."""
        return jnp.take(x, jnp.argsort(t.order), axis=0)

    def initial_conditionals(self, t: PackedTables, x: Array) -> Array:
        """(N, C) 0."""
        return jnp.zeros(x.shape, self._real)

    def sweep(self, key: Key, t: PackedTables, x: Array, beta: Array) -> tuple[Array, Array]:
        """(x, p), each of T values of beta being that of C / T replicas; p (N, C) of p(x_i = 1 | rest)^β as of the
        update, of the largest beta alone, which is what a step reports: 0 of the others."""
        count, (rows, chains) = t.temperatures.shape[0], x.shape
        by_temperature = jnp.argsort(beta) if count > 1 else jnp.arange(chains)
        betas = beta[by_temperature].reshape(count, -1)[:, 0]
        levels = [packed.thresholds(jnp.asarray(colour.fields), betas) for colour in t.colours]
        layout = Packed.layout(count, chains // count)
        cold = layout._replace(temperatures=1)
        # XLA would compute words and thresholds anew wherever they are read. On a GPU barriers last until that is
        # decided; on a CPU, where this runs in tests alone, they do not, and a sweep takes thirty times as long.
        states, levels = barrier((layout.pack(barrier(jnp.take(x, by_temperature, axis=1))), levels))

        def draw(low: int, shape: tuple[int, int]) -> Sequence[Array]:
            block_key = random.fold_in(key, low)
            return [random.bits(random.fold_in(block_key, number), shape) for number in range(1 + packed.PLANES)]

        def observe(threshold: Array, digits: Sequence[Array], _: Array) -> Array:
            p = threshold[:, :, -1:].astype(self._real) * 2.0**-packed.FRACTION_BITS
            return cold.select(p, [digit[:, -layout.width :] for digit in digits])

        cold_p = jnp.zeros((rows, layout.replicas), self._real)
        states, sums = barrier(packed.sweep(draw, t.colours, levels, states, cold_p, observe))
        p = self.initial_conditionals(t, x).at[:, by_temperature[-layout.replicas :]].set(sums)
        return jnp.take(barrier(layout.unpack(states[:-1])), jnp.argsort(by_temperature), axis=1), p

    def log_weights(self, t: PackedTables, x: Array) -> tuple[Array, None]:
        """(C,) D, less the model's constant; there are no hard zeros."""
        total, low = jnp.zeros(x.shape[1:], self._real), 0
        padded = jnp.concatenate([x, jnp.zeros_like(x[:1])])
        for colour in t.colours:
            high = low + len(colour.fields)
            total = total + jnp.sum(jnp.where(x[low:high] > 0, self._sum_fields(colour, padded), 0.0), axis=0)
            low = high
        return total, None

    def _sum_fields(self, colour: Colour, padded: Array) -> Array:
        """(n, C) of each row its bias and half of what its neighbours add: a coupling is counted from both ends."""
        field = colour.fields[:, :1]
        for k, rows in enumerate(colour.neighbours):
            flip, level = jnp.zeros((), jnp.uint8), 2**k
            if colour.flips is not None:
                flip, level = (colour.flips[k] & np.uint32(1)).astype(jnp.uint8), 1
            step = colour.fields[:, level, None] - colour.fields[:, :1]
            # The bias is the field where all neighbours are 0, whose levels are those of the flips.
            field = field + step * ((padded[rows] ^ flip).astype(self._real) + flip.astype(self._real)) / 2
        return field


class Packed(NamedTuple):
    """Replicas of T temperatures in words: of each temperature's number j, bit j // W of its word j % W.

    Attributes:
        temperatures: T.
        replicas: of each temperature.
        width: W words of each.
        bits: of the fullest word.
    """

    temperatures: int
    replicas: int
    width: int
    bits: int

    @classmethod
    def layout(cls, temperatures: int, replicas: int) -> Packed:
        """In as few words as there can be."""
        width = -(-replicas // WORD_BITS)
        return cls(temperatures, replicas, width, -(-replicas // width))

    def pack(self, x: Array) -> Array:
        """(N + 1, T W) uint32, the last row of zeros, from x (N, T times the replicas)."""
        by_temperature = x.reshape(len(x), self.temperatures, self.replicas)
        room = self.bits * self.width - self.replicas
        padded = jnp.pad(by_temperature, ((0, 1), (0, 0), (0, room))).astype(jnp.uint32)
        shape = (-1, self.temperatures, self.bits, self.width)
        packed_states = jnp.sum(padded.reshape(shape) << self._places(), axis=2, dtype=jnp.uint32)
        return packed_states.reshape(len(x) + 1, -1)

    def unpack(self, words: Array) -> Array:
        """(n, T times the replicas) uint8 from (n, T W)."""
        states = (words.reshape(-1, self.temperatures, 1, self.width) >> self._places()) & np.uint32(1)
        return self._by_replica(states.astype(jnp.uint8))

    def select(self, values: Array, digits: Sequence[Array]) -> Array:
        """(n, T times the replicas) of values (n, L, T) those of the levels with such digits (n, T W)."""
        by_level = [values[:, level, :, None, None] for level in range(values.shape[1])]
        for digit in digits:
            is_high = (digit.reshape(-1, self.temperatures, 1, self.width) >> self._places()) & np.uint32(1) > 0
            pairs = zip(by_level[::2], by_level[1::2], strict=False)
            chosen = [jnp.where(is_high, high, low) for low, high in pairs]
            by_level = chosen + by_level[len(chosen) * 2 :]
        shape = (len(values), self.temperatures, self.bits, self.width)
        return self._by_replica(jnp.broadcast_to(by_level[0], shape))

    def _by_replica(self, values: Array) -> Array:
        flat = values.reshape(len(values), self.temperatures, self.bits * self.width)
        return flat[:, :, : self.replicas].reshape(len(values), -1)

    def _places(self) -> Array:
        return jnp.arange(self.bits, dtype=jnp.uint32)[:, None]


class PackedReplicasKernel(ProgramKernel):
    """Tempering and populations over packed replicas.

    Attributes:
        devices: for which it is made, as of `PackedGibbsKernel`.
    """

    devices: ClassVar[frozenset[str]] = frozenset({"gpu"})

    @classmethod
    def refuses(cls, method: ParallelTempering | Annealed, backend: Backend, model: Model) -> str:
        """As of `Kernel`."""
        if backend.device not in cls.devices:
            return f"replicas are packed into words on device=gpu; device={backend.device} was asked for"
        if not is_binary_pairwise(model):
            return f"packed replicas are of binary pairwise models, which {model.name} is not"
        return packing_refusal(to_pairwise(model))

    def __init__(
        self,
        method: ParallelTempering | Annealed,
        backend: Backend,
        model: Model,
        tables: LadderTables | PopulationTables,
    ) -> None:
        """Raises UnsupportedError as `build_colours`."""
        assert isinstance(tables.replicas, PairTables)
        temperatures = len(tables.betas) if isinstance(tables, LadderTables) else 1
        colours = build_colours(to_pairwise(model), tables.replicas)
        self.tables = tables._replace(replicas=PackedTables(tables.replicas.order, colours, np.zeros(temperatures)))
        self.program: Program = method.program(backend)

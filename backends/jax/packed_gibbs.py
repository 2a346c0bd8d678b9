"""The kernel gibbs.jax: chains of models of few neighbours, 32 to a word; for the rest the method's program runs.

Random numbers are of (row, word, sweep, draw), so that the way in which a run is cut into batches changes nothing. Sums
are integers and stay on the device for the whole of a batch. Where all chains' sums were too many to copy, those of
groups of chains are reported in their place. log Z is looked for with floats, from as many of the chains as that is
worth, by the program's own functions.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spinbench.api import Backend, Kernel, Model, PairwiseModel
from spinbench.backends.jax import JaxBackend
from spinbench.backends.jax import packed_sweeps as packed
from spinbench.backends.jax.packed_layout import (
    MAX_CHAIN_SUMS,
    MIN_GROUPS,
    Packing,
    build_colours,
    choose_packing,
    packing_refusal,
)
from spinbench.foundation.trees import map_arrays
from spinbench.mathematics.graphs.sweep_layouts import by_variable
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.methods.gibbs.program import State as ProgramState
from spinbench.methods.gibbs.sweeps import Tables

# Share of the chains at which log Z is looked for where they are many, and the smallest number: a sweep of floats takes
# as long as some twenty packed ones.
LOOK_SHARE = 16
MIN_LOOK_CHAINS = 8
# Of a sum of a batch on the device.
SUM_BYTES = np.dtype(np.uint64).itemsize
# Folded into the key of a step for the random numbers of a look.
LOOK_STREAM = 2**31 - 1
# Bytes a second in which sums come to the host, conversion included, and the share of a batch that this may take.
COPY_RATE, COPY_SHARE = 1e9, 0.1


class PackedState(NamedTuple):
    """Chains of one run.

    Attributes:
        key: (2,) uint32, of all random numbers.
        step: sweeps so far, burn-in and those at other temperatures included.
        packed_states: (N + 1, W) uint32, states of the rows; the last row is of zeros.
        packing: how chains lie in them.
        mode: (N, L) s* of the L first chains, at which log Z is looked for; None where it is not.
    """

    key: jax.Array
    step: int
    packed_states: jax.Array
    packing: Packing
    mode: jax.Array | None


class PackedGibbsKernel(Kernel[Tables, PackedState]):
    """Sweeps by colour of binary pairwise models, with either estimate of marginals.

    Attributes:
        devices: for which it is made. On others results say nothing of its refusal, unless it was chosen; with
            `precision_bits`, which the program lacks, it runs on all.
    """

    devices: ClassVar[frozenset[str]] = frozenset({"gpu"})

    @classmethod
    def refuses(cls, method: Gibbs, backend: Backend, model: Model) -> str:
        """As of `Kernel`."""
        if backend.device not in cls.devices and not method.precision_bits:
            return f"chains are packed into words on device=gpu; device={backend.device} was asked for"
        required = {"scan": "chromatic", "sample": "sweep", "threads": 1}
        for setting, value in required.items():
            if getattr(method, setting) != value:
                return f"packed chains take {setting}={value}; {setting}={getattr(method, setting)} was asked for"
        if method.records_log_t:
            return "log_z=chib needs T(s* <- s) at every step, which packed chains do not have"
        if not isinstance(model, PairwiseModel):
            return f"packed chains are of binary pairwise models, which {model.name} is not"
        return packing_refusal(model)

    def __init__(self, method: Gibbs, backend: JaxBackend, model: PairwiseModel, tables: Tables) -> None:
        """Raises UnsupportedError as `build_colours`, or if there is too little memory."""
        self._method, self._backend, self._tables = method, backend, tables
        # Philox needs 64-bit products, and thresholds 32 bits of p, whatever the precision of looks.
        self._bits = bits = type(backend)(precision="float64", device=backend.device)
        self._variables = model.num_variables
        self.batch_seconds = max(0.02, MIN_GROUPS * SUM_BYTES * self._variables / COPY_RATE / COPY_SHARE)
        colours = map_arrays(bits.to_device, build_colours(model, tables))
        self._fields = tuple(colour.fields for colour in colours)
        self._colours = tuple(colour._replace(fields=()) for colour in colours)
        self._at_beta = bits.compile(self._compute_levels)
        self._levels = self._at_beta(self._fields, np.float64(1))
        self._warm, self._advance = bits.compile(self._make_sweeps), bits.compile(self._sum_sweeps)
        if method.log_z == "none":
            self._fields = ()
            return
        program = method.program(backend)
        self._device_tables = map_arrays(lambda leaf: backend.to_device(np.asarray(leaf)), tables)
        self._look = backend.compile(
            lambda key, step, t, *chains: program.look(
                backend.fold_in(backend.fold_in(key, step), LOOK_STREAM), t, _unpack_program_state(*chains)
            )
        )
        self._slope = backend.compile(lambda t, *chains: program.slope(t, _unpack_program_state(*chains))["slope"])

    def init(self, seed: int, start: np.ndarray) -> PackedState:
        packing = choose_packing(*start.shape)
        self._require_memory(packing)
        packed_states = np.zeros((self._variables + 1, packing.width), dtype=np.uint32)
        packed_states[:-1] = packing.pack(start[self._tables.order])
        mode = None
        if self._method.log_z != "none":
            count = packing.chains
            if start.size > MAX_CHAIN_SUMS:
                count = min(count, max(MIN_LOOK_CHAINS, count // LOOK_SHARE))
            mode = self._backend.to_device(np.repeat(self._tables.mode[:, None], count, axis=1))
        device_states = self._bits.split_chains(self._bits.to_device(packed_states))
        return PackedState(self._bits.key(seed), 0, device_states, packing, mode)

    def warm(self, state: PackedState, steps: int) -> PackedState:
        state = self._sweep_at(state, self._levels, steps)
        # So that burn-in does not count as sampling.
        self._bits.block_until_ready(state.packed_states)
        return state

    def advance(self, state: PackedState, steps: int) -> tuple[PackedState, dict[str, np.ndarray]]:
        masks, sizes = state.packing.masks, state.packing.sizes
        packed_states, sums = self._advance(
            state.key, state.step, steps, self._colours, self._levels, state.packed_states, masks, np.zeros(len(sizes))
        )
        means = self._bits.to_host(sums) / (2.0**packed.FRACTION_BITS * sizes)
        name = "p" if self._method.marginals == "rao_blackwell" else "s"
        return state._replace(step=state.step + steps, packed_states=packed_states), {name: means}

    def look(self, state: PackedState) -> dict[str, np.ndarray]:
        if state.mode is None:
            return {}
        logs = self._look(state.key, state.step, self._device_tables, *self._look_arguments(state))
        return {name: self._backend.to_host(values) for name, values in logs.items()}

    def temper(self, state: PackedState, betas: np.ndarray, sweeps: int) -> tuple[PackedState, np.ndarray]:
        if not self._method.may_use_stones:
            return super().temper(state, betas, sweeps)
        slopes = []
        for beta in betas:
            levels = self._at_beta(self._fields, beta)
            for _ in range(sweeps):
                state = self._sweep_at(state, levels, 1)
                slopes.append(self._slope(self._device_tables, *self._look_arguments(state)))
        whole = np.array([self._backend.to_host(values) for values in slopes], dtype=np.float64)
        return state, whole.reshape(len(betas), sweeps, -1).swapaxes(0, 1)

    def slope(self, state: PackedState) -> dict[str, np.ndarray]:
        if not self._method.may_use_stones:
            return {}
        slope = self._slope(self._device_tables, *self._look_arguments(state))
        return {"slope": self._backend.to_host(slope)}

    def states(self, state: PackedState) -> np.ndarray:
        packed_states = self._bits.to_host(state.packed_states)[:-1]
        return by_variable(self._tables.order, state.packing.unpack(packed_states))

    def _look_arguments(self, state: PackedState) -> tuple[Any, ...]:
        """States, bits of those of the first chains that are looked at, and s* of each."""
        assert state.mode is not None
        bits = np.arange(-(-state.mode.shape[1] // state.packing.width), dtype=np.uint32)
        return state.packed_states, bits, state.mode

    def _sweep_at(self, state: PackedState, levels: Any, steps: int) -> PackedState:
        packed_states = self._warm(state.key, state.step, steps, self._colours, levels, state.packed_states)
        return state._replace(step=state.step + steps, packed_states=packed_states)

    def _require_memory(self, packing: Packing) -> None:
        """Of states before and after, and sums; tables are there already."""
        word_bytes = np.dtype(np.uint32).itemsize
        need = 2 * word_bytes * packing.width + SUM_BYTES * (packing.masks.size + len(packing.sizes))
        parts = self._bits.count_parts(packing.width)
        self._bits.require_memory(need * self._variables // parts, f"states and sums of {packing.chains} chains")

    # Compiled, in 64-bit mode

    def _compute_levels(self, fields: Any, beta: Any) -> tuple[Any, ...]:
        bits = self._method.precision_bits or 32
        return tuple(packed.thresholds(block, beta, bits) for block in fields)

    def _make_sweeps(self, key: Any, index: Any, steps: Any, colours: Any, levels: Any, packed_states: Any) -> Any:
        def body(i: jax.Array, packed_states: jax.Array) -> jax.Array:
            return packed.sweep(partial(packed.draw_philox, key, i), colours, levels, packed_states)[0]

        return jax.lax.fori_loop(index, index + steps, body, packed_states)

    def _sum_sweeps(
        self, key: Any, index: Any, steps: Any, colours: Any, levels: Any, packed_states: Any, masks: Any, sizes: Any
    ) -> tuple[Any, Any]:
        """States, and sums (N, U) over the steps; of `sizes` (U,) the number counts."""

        def observe(at_levels: Any, digits: Any, states: jax.Array) -> jax.Array:
            if self._method.marginals == "rao_blackwell":
                return packed.sum_conditionals(at_levels, digits, masks)
            return packed.count_ones(states, masks)

        def body(i: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            draw = partial(packed.draw_philox, key, i)
            packed_states, sums = packed.sweep(draw, colours, levels, *carry, observe=observe)
            assert sums is not None
            return packed_states, sums

        sums = jnp.zeros((self._variables, *masks.shape), dtype=packed.SUM)
        packed_states, sums = jax.lax.fori_loop(index, index + steps, body, (packed_states, sums))
        return packed_states, packed.fold_columns(sums, len(sizes))


def _unpack_program_state(packed_states: jax.Array, bits: jax.Array, mode: jax.Array) -> ProgramState:
    """Of as many of the first chains as `mode` (N, L) is of."""
    states = packed.unpack(packed_states[:-1], bits)[:, : mode.shape[1]]
    return ProgramState(states.astype(mode.dtype), (), (), (), mode)

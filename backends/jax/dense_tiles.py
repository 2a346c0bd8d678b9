"""Members of a tile of a dense model drawn one after another on a GPU, a thread a chain.

Repetitions until a tile's states agree, as of `Tiles`, take two or three programs each on a GPU, and a wait for what
they say; a thread that goes through the members needs neither. It reads nothing that another thread writes.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from spinbench.api import Array
from spinbench.backends.jax import JaxBackend
from spinbench.foundation.plugins import describe_error
from spinbench.foundation.remarks import remark
from spinbench.mathematics.heat_bath.tiles import Tiles

# Variables of a tile: half of those of repetitions, since the work of a thread grows with their square.
WIDTH = 128
# Chains of a group of threads that run together: a warp.
LANES = 32
# Members whose fields a thread has in registers at once.
PANEL = 16

NOT_USED = (
    "dense models are swept by repeated products, as the kernel that draws their variables in sequence fails here"
)


class SequentialTiles(Tiles):
    """`Tiles`, but by a kernel where there is one device, in single precision.

    Attributes:
        devices: for which it is made; on a CPU the kernel is interpreted, for tests.
    """

    devices: ClassVar[frozenset[str]] = frozenset({"gpu"})

    def __init__(self, backend: JaxBackend) -> None:
        super().__init__(backend)
        self._interpret = backend.device == "cpu"
        # A kernel of Pallas would not be split with the chains.
        suits = backend.device in self.devices and backend.precision == "float32" and backend.count_parts(0) == 1
        self._has_kernel = suits and is_kernel_right(backend.device)
        if self._has_kernel:
            self._width = WIDTH

    def _draw_tile(
        self, fields: Array, inner: Array, first: Array, threshold: Array, beta: Array | None, *, backward: bool
    ) -> tuple[Array, Array]:
        if not self._has_kernel:
            return super()._draw_tile(fields, inner, first, threshold, beta, backward=backward)
        order = slice(None, None, -1 if backward else 1)
        beta = jnp.ones_like(fields[0]) if beta is None else beta
        tile = fields[order], inner[order, order], first[order], threshold[order], beta
        x, states = draw_in_sequence(*tile, interpret=self._interpret)
        return x[order], states[order]


def draw_in_sequence(
    fields: Array, inner: Array, first: Array, threshold: Array, beta: Array, *, interpret: bool = False
) -> tuple[Array, Array]:
    """(x, s) of a tile, (w, C): x = beta (fields + inner (s - first)) and s = [x > threshold].

    Args:
        fields: (w, C) of the states before.
        inner: (w, w), zero on and above the diagonal.
        first: (w, C) the members' states before.
        threshold: (w, C).
        beta: (C,).
        interpret: without a GPU.
    """
    # Not with the module: what is not used on a CPU costs its processes a second.
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    rows, chains = -(-fields.shape[0] // PANEL) * PANEL, -(-fields.shape[1] // LANES) * LANES
    by_chain = pallas.BlockSpec((rows, LANES), lambda group: (0, group))
    kernel = pallas.pallas_call(
        partial(_draw_panels, rows // PANEL),
        grid=(chains // LANES,),
        in_specs=[
            by_chain,
            pallas.BlockSpec((rows, rows), lambda group: (0, 0)),
            by_chain,
            by_chain,
            pallas.BlockSpec((LANES,), lambda group: (group,)),
        ],
        out_specs=[by_chain] * 2,
        out_shape=[jax.ShapeDtypeStruct((rows, chains), fields.dtype)] * 2,  # type: ignore[no-untyped-call]
        compiler_params=None if interpret else triton.CompilerParams(num_warps=1, num_stages=1),
        interpret=interpret,
    )
    shapes = (rows, chains), (rows, rows), (rows, chains), (rows, chains), (chains,)
    arrays = zip((fields, inner, first, threshold, beta), shapes, strict=True)
    padded = [jnp.pad(array, [(0, n - m) for m, n in zip(array.shape, shape, strict=True)]) for array, shape in arrays]
    x, states = kernel(*padded)
    return x[: fields.shape[0], : fields.shape[1]], states[: fields.shape[0], : fields.shape[1]]


def _draw_panels(
    panels: int, fields: Any, inner: Any, first: Any, threshold: Any, beta: Any, x: Any, states: Any
) -> None:
    """The kernel: references to blocks of `draw_in_sequence`'s arrays, `LANES` chains each, x and states to be set."""
    scale = beta[:]

    def draw_panel(panel: Array, _: None) -> None:
        low = panel * PANEL

        def add_panel(before: Array, own: list[Array]) -> list[Array]:
            for row in (before * PANEL + k for k in range(PANEL)):
                change = states[row, :] - first[row, :]
                own = [field + inner[low + i, row] * change for i, field in enumerate(own)]
            return own

        own = lax.fori_loop(0, panel, add_panel, [fields[low + i, :] for i in range(PANEL)])
        for k in range(PANEL):
            x[low + k, :] = own[k] * scale
            new = (own[k] * scale > threshold[low + k, :]).astype(scale.dtype)
            states[low + k, :] = new
            change = new - first[low + k, :]
            for i in range(k + 1, PANEL):
                own[i] = own[i] + inner[low + i, low + k] * change

    lax.fori_loop(0, panels, draw_panel, None)


@cache
def is_kernel_right(device: str) -> bool:
    """Whether the kernel compiles for a device, and draws a tile of whole numbers as it should; a remark says why not.

    It takes a compiler, Triton, that other programs do not, and that not every version of JAX has.
    """
    backend = JaxBackend(precision="float32", device=device)
    draw = backend.compile(partial(draw_in_sequence, interpret=device == "cpu"))
    rng = np.random.default_rng(1)
    shape = 2 * PANEL + 5, LANES + 3
    fields, threshold = rng.integers(-9, 10, (2, *shape)).astype(np.float32)
    inner = np.tril(rng.integers(-3, 4, (shape[0], shape[0])), -1).astype(np.float32)
    first = rng.integers(0, 2, shape).astype(np.float32)
    beta = rng.integers(0, 3, shape[1:]).astype(np.float32)
    try:
        # In a thread of its own, which traces nothing: tiles may be made while a program is traced.
        with ThreadPoolExecutor(1) as thread:
            drawn = thread.submit(draw, fields, inner, first, threshold, beta).result()
        x, states = map(backend.to_host, drawn)
    except Exception as error:
        remark(f"{NOT_USED}: {describe_error(error)}")
        return False
    expected = states * 0
    for k in range(shape[0]):
        expected[k] = beta * (fields[k] + inner[k] @ (expected - first)) > threshold[k]
    # Couplings to members that come later are zeros.
    is_right = np.array_equal(states, expected) and np.array_equal(x, beta * (fields + inner @ (expected - first)))
    if not is_right:
        remark(f"{NOT_USED}: its sums of whole numbers are wrong")
    return is_right

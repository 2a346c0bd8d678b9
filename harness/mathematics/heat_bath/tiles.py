"""Updates one after another where all are coupled with all: fields of many variables from one product with W.

A sweep takes the variables of a dense graph in tiles of `WIDTH`. Of the members of a tile, fields are b + L s: b from
one product of the tile's rows of W with all other states, L the couplings with members that come before. Draws are
s_k = [b_k + (L s)_k > logit u_k], a triangular system, whose solution is found from any guess: each repetition of
s <- [b + L s > logit u] makes one more member right at least, and most tiles are done after few (Jacobi's iteration,
as in Song et al., "Accelerating feedforward computation via parallel nonlinear equation solving", ICML 2021).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinbench.foundation.arithmetic import Arithmetic, make_operations

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinbench.api import Array, Backend, Index
    from spinbench.api.backend import Carry
    from spinbench.mathematics.graphs.sweep_layouts import Scan

# Variables of a tile: wide tiles take fewer calls and more repetitions until they converge.
WIDTH = {"cpu": 32, "gpu": 256}
# Repetitions between checks for changes, which wait for a GPU.
AT_ONCE = {"cpu": 1, "gpu": 4}


def in_tiles(scan: Scan) -> bool:
    """Whether a scan's chunks are rows of W, one binary variable each, in their order."""
    return scan.columns is None and scan.rows.shape[1] == 1


class Tiles:
    """Of scans that are `in_tiles`; s (N, C) as in `updates`."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self._arithmetic = backend, make_operations(backend, Arithmetic)
        self._xp = backend.xp
        device = "cpu" if backend.device == "cpu" else "gpu"
        self._width, self._at_once = WIDTH[device], AT_ONCE[device]

    def sweep(
        self, scan: Scan, s: Array, p: Array, u: Array, *, backward: bool = False, beta: Array | None = None
    ) -> tuple[Array, Array]:
        """A sweep with uniforms u (N, C); (s, p), both given up, where p is passed through if it is ().

        Args:
            scan, s, p, u: of it.
            backward: the last row first.
            beta: (C,) what fields are multiplied by.
        """
        xp, backend, arithmetic = self._xp, self._backend, self._arithmetic
        # Replaces u = 0, whose logit is infinite.
        lowest = float(np.finfo(backend.precision).eps) / 4
        u = xp.where(u > 0, u, lowest)
        threshold = xp.log(u / (1 - u))

        def tile(low: Index, width: int, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            s, p = carry
            fields, inner = self._fields(scan, low, width, s, backward=backward)
            tile = fields, inner, arithmetic.window(s, low, width), arithmetic.window(threshold, low, width), beta
            x, states = self._draw_tile(*tile, backward=backward)
            rows = low + xp.arange(width)
            s = backend.update(s, rows, states, donate=True)
            if isinstance(p, tuple):
                return s, p
            return s, backend.update(p, rows, self._arithmetic.sigmoid(x), donate=True)

        swept: tuple[Array, Array] = self._over(s.shape[0], tile, (s, p), backward=backward)
        return swept

    def conditionals(self, scan: Scan, s: Array) -> Array:
        """(N, C) p(s_i = 1 | rest) of all variables."""
        return self._arithmetic.sigmoid(self._arithmetic.add(self._xp.matmul(scan.weights, s), scan.biases[:, None]))

    def sum_forced_fields(
        self, scan: Scan, s: Array, target: Array, function: Callable[[Array, Array], Array], total: Array
    ) -> Array:
        """Add up what a sweep meets that forces values upon all variables, one after another.

        Args:
            scan, s: of it.
            target: (N,) the values, 0 and 1.
            seen: function of fields x (w, C) and of their variables' values (w, 1), to (w, C).
            total: (C,) to which its values are added.
        """
        xp, arithmetic = self._xp, self._arithmetic
        columns = xp.arange(s.shape[0])

        def tile(low: Index, width: int, total: Array) -> Array:
            rows = (low + xp.arange(width))[:, None]
            weights = arithmetic.window(scan.weights, low, width)
            before = xp.matmul(xp.where(columns < rows, weights, 0.0), target)
            x = xp.matmul(xp.where(columns > rows, weights, 0.0), s)
            x = arithmetic.add(x, (arithmetic.window(scan.biases, low, width) + before)[:, None])
            return total + xp.sum(function(x, arithmetic.window(target, low, width)[:, None]), axis=0)

        total_with_tiles: Array = self._over(s.shape[0], tile, total, backward=False)
        return total_with_tiles

    def _over(self, rows: int, tile: Callable[[Index, int, Carry], Carry], carry: Carry, *, backward: bool) -> Carry:
        """Whole tiles in a loop, and the rest of the rows."""
        width = self._width
        whole, rest = rows // width, rows % width
        if rest and backward:
            carry = tile(whole * width, rest, carry)

        def body(b: Index, carry: Carry) -> Carry:
            return tile((whole - 1 - b if backward else b) * width, width, carry)

        # Skipped without full tiles: compilers would compile the loop's body all the same.
        if whole:
            carry = self._backend.fori_loop(0, whole, body, carry)
        if rest and not backward:
            carry = tile(whole * width, rest, carry)
        return carry

    def _fields(self, scan: Scan, low: Index, width: int, s: Array, *, backward: bool) -> tuple[Array, Array]:
        """(width, C) fields, and L (width, width), the couplings to members that come before."""
        xp, arithmetic = self._xp, self._arithmetic
        weights = arithmetic.window(scan.weights, low, width)
        place = xp.arange(width)
        before = place[None, :] > place[:, None] if backward else place[None, :] < place[:, None]
        # W is symmetric: the rows of a window of its transpose are the columns of the tile.
        inner = xp.where(before, arithmetic.window(weights.T, low, width), 0.0)
        fields = arithmetic.add(xp.matmul(weights, s), arithmetic.window(scan.biases, low, width)[:, None])
        return fields, inner

    def _draw_tile(
        self, fields: Array, inner: Array, first: Array, threshold: Array, beta: Array | None, *, backward: bool
    ) -> tuple[Array, Array]:
        """(x, s) of a tile, (width, C), from its states before, `first`, whose fields (width, C) are."""
        xp, b = self._xp, fields - self._xp.matmul(inner, first)

        def repeat(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            x, states, _ = carry
            last = states
            for _ in range(self._at_once):
                last, x = states, b + xp.matmul(inner, states)
                if beta is not None:
                    x = x * beta
                states = xp.astype(x > threshold, self._backend.real)
            return x, states, xp.any(states != last)

        x, states, _ = self._backend.while_loop(lambda carry: carry[2], repeat, (b, first, xp.asarray(True)))
        return x, states

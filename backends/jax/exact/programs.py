"""The two passes through a bucket, compiled for sizes that are powers of two, so that few programs serve all models.

All tables lie in one flat array, which each program takes and gives back (in place, as it is donated).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from spinbench.backends.jax.exact.layout import Bucket, padded
from spinbench.foundation import deadline


def up(arena: Any, bucket: Bucket) -> tuple[Any, Any]:
    """The array with the bucket's message, less its maximum, and its conditional; and the maximum.

    Log tables are summed; -inf where a state of the others is impossible.
    """
    numbers = np.array([bucket.rest, bucket.message, bucket.conditional, bucket.count])
    found: tuple[Any, Any] = _program(_up, (bucket.states, padded(bucket.rest)), arena, numbers, bucket.pieces)
    return found


def down(arena: Any, bucket: Bucket) -> tuple[Any, Any]:
    """The array with the probabilities of the children's separators in their messages' places; and p of the variable.

    The place of the bucket's own message holds those of its separator.
    """
    numbers = np.array([bucket.rest, bucket.message, bucket.conditional, bucket.child_count])
    found: tuple[Any, Any] = _program(_down, (bucket.states, padded(bucket.rest)), arena, numbers, bucket.children)
    return found


def _found(numbers: Any, digits: Any, first: Any, last: Any) -> Any:
    """Where the entries of these numbers lie, by the rows from `first` to `last` of the digits; see `Bucket`.

    Of numbers beyond the last entry, too, it is a place within the table, as a digit is below its size.
    """
    import jax.numpy as jnp
    from jax import lax

    def add(r: Any, offset: Any) -> Any:
        div, size, stride = digits[r]
        return offset + (numbers // div) % size * stride

    return lax.fori_loop(first, last, add, jnp.zeros_like(numbers))


def _up(states: int, size: int, arena: Any, numbers: Any, rows: Any) -> tuple[Any, Any]:
    import jax.numpy as jnp
    from jax import lax

    rest, message_at, conditional_at, count = numbers
    others = jnp.arange(size, dtype=rows.dtype)

    def add(p: Any, total: Any) -> Any:
        row = rows[p]
        at = row[0] + _found(others, row[3:].reshape(-1, 3), 0, row[2])
        return total + _read(arena, at + row[1] * jnp.arange(states, dtype=rows.dtype)[:, None])

    total = lax.fori_loop(0, count, add, jnp.zeros((states, size)))
    peak = total.max(axis=0)
    peak = jnp.where(jnp.isneginf(peak), 0.0, peak)
    weights = jnp.exp(total - peak)
    mass = weights.sum(axis=0)
    message = jnp.where(jnp.arange(size) < rest, jnp.log(mass) + peak, -jnp.inf)
    largest = message.max()
    message -= jnp.where(jnp.isneginf(largest), 0.0, largest)
    conditional = jnp.where(mass > 0, weights / mass, 0.0)
    arena = lax.dynamic_update_slice(arena, message, (message_at,))
    return lax.dynamic_update_slice(arena, conditional.ravel(), (conditional_at,)), largest


def _down(states: int, size: int, arena: Any, numbers: Any, rows: Any) -> tuple[Any, Any]:
    import jax.numpy as jnp
    from jax import lax

    rest, message_at, conditional_at, count = numbers
    prior = lax.dynamic_slice(arena, (message_at,), (size,))
    conditional = lax.dynamic_slice(arena, (conditional_at,), (states * size,)).reshape(states, size)
    belief = jnp.where(jnp.arange(size) < rest, conditional * prior, 0.0)

    def share(p: Any, arena: Any) -> Any:
        """Entries of the belief in the order of the child's separator, halved until each of its states has one."""
        place, kept, summed, halvings, *counts = rows[p, :6]
        digits, places = rows[p, 6:].reshape(-1, 3), jnp.arange(2 * states * size, dtype=rows.dtype)
        mine, theirs = places >> halvings, places & ((1 << halvings) - 1)
        at = _found(mine, digits, 0, counts[0]) + _found(theirs, digits, counts[0], counts[0] + counts[1])
        parts = jnp.where((mine < kept) & (theirs < summed), _read(belief.ravel(), at), 0.0)
        sums = lax.fori_loop(0, halvings, _halved, parts)[: states * size]
        before = lax.dynamic_slice(arena, (place,), sums.shape)
        return lax.dynamic_update_slice(arena, jnp.where(places[: states * size] < kept, sums, before), (place,))

    own = belief.sum(axis=1)
    return lax.fori_loop(0, count, share, arena), own / own.sum()


def _halved(_: Any, parts: Any) -> Any:
    """Sums of pairs, and as many zeros."""
    import jax.numpy as jnp

    sums = parts.reshape(-1, 2).sum(axis=1)
    return jnp.concatenate([sums, jnp.zeros_like(sums)])


def _read(table: Any, at: Any) -> Any:
    return table.at[at].get(mode="promise_in_bounds")


def _program(function: Callable[..., Any], static: tuple[int, int], arena: Any, numbers: Any, rows: Any) -> Any:
    return _compiled(function, static, arena.shape, rows.shape, rows.dtype, default_device())(arena, numbers, rows)


def default_device() -> Any:
    """On which JAX computes here."""
    import jax

    config: Any = jax.config
    return config.jax_default_device or jax.devices()[0]


@lru_cache(maxsize=1024)
def _compiled(
    function: Callable[..., Any],
    static: tuple[int, int],
    arena: tuple[int, ...],
    rows: tuple[int, int],
    dtype: Any,
    device: Any,
) -> Callable[..., Any]:
    """Of one array, or of a batch of them, whose first axis is the models'."""
    import jax

    described: Any = jax.ShapeDtypeStruct
    arrays = [(arena, np.float64), ((4,), np.int64), (rows, dtype)]
    like = [described(shape, dtype) for shape, dtype in arrays]
    with deadline.compiling():
        whole: Any = partial(function, *static)
        if len(arena) > 1:
            whole = jax.vmap(whole, in_axes=(0, None, None))
        return jax.jit(whole, donate_argnums=0).lower(*like).compile()

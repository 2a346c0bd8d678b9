"""Philox gives the words of its authors' library."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.backends.jax import JaxBackend
from spinbench.backends.jax.philox import philox

# philox4x32, 10 rounds, in kat_vectors of Random123 1.14: counter, key, words.
VECTORS = [
    (
        (0, 0, 0, 0),
        (0, 0),
        (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
    ),
    (
        (0xFFFFFFFF,) * 4,
        (0xFFFFFFFF,) * 2,
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), VECTORS)
def test_published_vectors(counter, key, words):
    draw = JaxBackend().compile(lambda counter, key: philox(tuple(counter), key))
    drawn = draw(np.array(counter, dtype=np.uint32), np.array(key, dtype=np.uint32))
    assert tuple(int(word) for word in drawn) == words

"""Sets of small numbers as the bits of an integer."""

from __future__ import annotations


def members_of(bits: int) -> list[int]:
    """The numbers of the bits that are set, ascending; `bits` is not negative."""
    members = []
    while bits:
        low = bits & -bits
        members.append(low.bit_length() - 1)
        bits ^= low
    return members

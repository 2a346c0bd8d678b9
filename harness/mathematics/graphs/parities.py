"""Parities that hard zeros ask for: linear equations modulo 2, which propagation does not see through.

A factor of binary variables whose entries that are not zero lie in an affine subspace of GF(2)^k asks for the equations
of that space: parity checks, copies, exclusive ors. Taken together by elimination they say at once whether a state is
left, and give one, where search has to try most of 2^n (Urquhart, "Hard examples for resolution", J. ACM 1987).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from spinbench.models import Factor

# Largest number of equations, with whose square the cost of elimination grows.
MOST = 1024


class Parities:
    """Equations over variables as bits: of each the mask of its variables, and beside them, as bit `n`, its sum.

    Attributes:
        variables: mask of those that are in some equation.
        possible: whether the equations have a solution.
    """

    def __init__(self, n: int, equations: Iterable[int]) -> None:
        self._sum = 1 << n
        reduced = self._row_echelon(equations)
        self.possible = reduced is not None
        self._rows = list((reduced or {}).values())
        self.variables = 0
        for row in self._rows:
            self.variables |= row & (self._sum - 1)

    def solution(self, domains: Sequence[int], rng: np.random.Generator) -> int | None:
        """A random solution as bits, by variable, of those over `domains`; None where there is none.

        Args:
            domains: (N,) states of each variable, as bits; those of two are free.
            rng: for what equations leave free.
        """
        fixed = ones = 0
        for v in members_of(self.variables):
            if domains[v] != 3:
                fixed |= 1 << v
                ones |= (domains[v] >> 1) << v
        left = (row & ~fixed ^ ((row & ones).bit_count() & 1) * self._sum for row in self._rows)
        reduced = self._row_echelon(left)
        if reduced is None:
            return None
        x = int.from_bytes(rng.bytes(self._sum.bit_length() // 8 + 1), "little") & self.variables & ~fixed | ones
        # Its other variables have smaller numbers and are already assigned.
        for last in sorted(reduced):
            row = reduced[last]
            odd = ((row & x & ~(1 << last)).bit_count() ^ (row >= self._sum)) & 1
            x = x & ~(1 << last) | odd << last
        return x

    def _row_echelon(self, equations: Iterable[int]) -> dict[int, int] | None:
        """Independent equations by the last of their variables; None where they contradict each other."""
        by_last_variable: dict[int, int] = {}
        for row in equations:
            while members := row & (self._sum - 1):
                last = members.bit_length() - 1
                if last not in by_last_variable:
                    by_last_variable[last] = row
                    break
                row ^= by_last_variable[last]
            else:
                if row:
                    return None
        return by_last_variable


def find_parities(n: int, factors: Sequence[Factor]) -> Parities | None:
    """Of all factors of binary variables, if any has three variables or more: others hide nothing from propagation.

    Args:
        n: number of variables.
        factors: those that have zeros, none of which is zero everywhere.
    """
    equations: list[int] = []
    hidden = False
    for factor in factors:
        if not set(factor.log_table.shape) <= {1, 2}:
            continue
        for members, odd in _equations(np.argwhere(factor.log_table > -np.inf)):
            row = 0
            for axis in members_of(members):
                row |= 1 << factor.scope[axis]
            equations.append(row | odd << n)
            hidden |= row.bit_count() > 2
        if len(equations) > MOST:
            return None
    return Parities(n, equations) if hidden else None


def _equations(points: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """(variables as bits, sum) of what holds modulo 2 for all points (P, k) of zeros and ones."""
    order = points.shape[1]
    codes = points @ (1 << np.arange(order, dtype=np.int64))
    first = int(codes[0])
    # Basis of the differences of points, by leading bit.
    span: dict[int, int] = {}
    for step in (codes[1:] ^ first).tolist():
        for lead, other in span.items():
            if step >> lead & 1:
                step ^= other
        if not step:
            continue
        lead = step.bit_length() - 1
        span = {pivot: min(other, other ^ step) for pivot, other in span.items()}  # clears the lead in the others
        span[lead] = step
        if len(span) == order:
            return []
    equations = []
    for free in range(order):
        if free not in span:
            members = 1 << free | sum(1 << lead for lead, other in span.items() if other >> free & 1)
            equations.append((members, (members & first).bit_count() & 1))
    return equations


def members_of(bits: int) -> list[int]:
    """The numbers of the bits that are set, ascending; `bits` is not negative."""
    members = []
    while bits:
        low = bits & -bits
        members.append(low.bit_length() - 1)
        bits ^= low
    return members

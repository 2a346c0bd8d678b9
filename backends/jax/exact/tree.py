"""Bucket tree elimination whose tables are made, summed and kept by XLA, on the CPU or a GPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from spinbench.backends.jax.exact.layout import Bucket, child, padded, piece, tables_of
from spinbench.backends.jax.exact.programs import default_device, down, up
from spinbench.reference.bucket_tree import BucketTree
from spinbench.reference.network import FloatArray
from spinbench.reference.solver import ZeroWeightError


class JaxTree(BucketTree):
    """The order and the passes are those of `BucketTree`; nothing is read back before all buckets were gone through.

    To be called with JAX's 64-bit mode switched on, on JAX's default device.
    """

    backend = "jax"
    entry_seconds = 5e-8
    variable_seconds = 3e-4

    def _memory(self, marginals: bool) -> int:
        """All tables, messages and conditionals, twice as they are copied to the device, and eight cliques at work."""
        return 16 * padded(self._places()[1]) + 64 * self._largest()

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """The passes up and down."""
        buckets, arena = self._laid_out()
        log_z, arena = self._up(buckets, arena)
        return log_z, np.concatenate([np.empty(0), *self.went_down(buckets, arena)]) if marginals else None

    def _forward(self, *, keep: bool) -> tuple[float, list[FloatArray]]:
        """For draws and joint tables, which are made on the host."""
        buckets, arena = self._laid_out()
        log_z, arena = self._up(buckets, arena)
        flat, kept = np.asarray(arena), []
        for v, bucket in enumerate(buckets):
            size = padded(bucket.rest)
            table = flat[bucket.conditional :][: bucket.states * size].reshape(bucket.states, size)
            kept.append(table[:, : bucket.rest].reshape(self._shape(self.clique[v])).copy())
        return log_z, kept

    def _sizes(self, v: int) -> tuple[int, int]:
        """States of the variable, and of the rest of its clique."""
        k, *others = self._shape(self.clique[v])
        return k, math.prod(others)

    def _places(self) -> tuple[list[tuple[int, int]], int]:
        """Of each variable's message and conditional, behind the model's tables; and where they end, with room for a
        clique behind, as programs write messages by whole cliques."""
        end = sum(table.size for table in self.network.tables.values())
        found = []
        for v in range(len(self.clique)):
            k, rest = self._sizes(v)
            found.append((end, end + padded(rest)))
            end += (k + 1) * padded(rest)
        return found, end + self._largest()

    def _largest(self) -> int:
        """Entries of the largest clique, padded."""
        sizes = [self._sizes(v) for v in self.listed]
        return max((k * padded(rest) for k, rest in sizes), default=0)

    def _laid_out(self) -> tuple[list[Bucket], Any]:
        """The buckets by variable, and the array with the model's tables on JAX's default device."""
        import jax

        return self.buckets(), jax.device_put(self.arena(), default_device())

    def arena(self) -> FloatArray:
        """The array with the model's tables, and room for all else."""
        arena, at = np.zeros(padded(self._places()[1])), 0
        for scope, table in self.network.tables.items():
            arena[at : at + table.size] = self._turned(scope).ravel()
            at += table.size
        return arena

    def buckets(self) -> list[Bucket]:
        """By variable; the same for all models of the same tables' scopes and sizes, in one order of elimination."""
        places, end = self._places()
        sizes, most = self.network.cardinalities, padded(end)
        at, tables = 0, {}
        for scope, table in self.network.tables.items():
            tables[scope], at = at, at + table.size
        pieces, children = [], []
        for v, clique in enumerate(self.clique):
            messages = [(self.clique[c][1:], places[c][0]) for c in self.children[v]]
            factors = [(self._sorted(scope), tables[scope]) for scope in self.own[v]]
            pieces.append([piece(clique, sizes, *table) for table in factors + messages])
            children.append([child(clique, sizes, *message) for message in messages])
        own, theirs = tables_of(pieces, 3, most), tables_of(children, 6, most)
        return [
            Bucket(*self._sizes(v), *places[v], own[v], len(pieces[v]), theirs[v], len(children[v]))
            for v in range(len(self.clique))
        ]

    def _up(self, buckets: list[Bucket], arena: Any) -> tuple[float, Any]:
        shifts, arena = self.went_up(buckets, arena)
        log_z = math.fsum([self.network.constant, *map(float, shifts)])
        if log_z == -math.inf:
            raise ZeroWeightError
        return log_z, arena

    def went_up(self, buckets: list[Bucket], arena: Any) -> tuple[list[Any], Any]:
        """What the messages were lessened by, numbers or, of a batch, (B,) each; and the array, or (B, …) arrays."""
        shifts = []
        for v in self.listed:
            arena, shift = up(arena, buckets[v])
            shifts.append(shift)
        return shifts, arena

    def went_down(self, buckets: list[Bucket], arena: Any) -> list[FloatArray]:
        """p(x_v) of all variables, of a batch (B, k). A root's message is log 1 less its maximum, 0, where its prior is
        1."""
        roots = [buckets[v].message for v in self.listed if len(self.clique[v]) == 1]
        arena = arena.at[..., np.array(roots, dtype=np.int64)].set(1.0)
        found: list[Any] = [None] * len(buckets)
        for v in reversed(self.listed):
            arena, found[v] = down(arena, buckets[v])
        return [np.asarray(marginal) for marginal in found]

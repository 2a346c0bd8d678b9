"""The move of Swendsen and Wang with fields, as array programs on any backend.

A bond that is satisfied, J σ σ' > 0, opens with probability 1 - exp(-2|J|). What open bonds join is a cluster; it
keeps its spins with probability 1 / (1 + exp(-2F)), F = Σ h σ over its spins as they are, or turns all of them.
"""

from __future__ import annotations

from spinbench.api import Array, Index, Key
from spinbench.methods.chain_program import ArrayOperations
from spinbench.methods.clusters.bonds import Bonds

# Rounds of label propagation before the first convergence check, then twice as many each time: the count of a loop has
# to be known before it begins.
FIRST_ROUNDS = 4


class ClusterMoves(ArrayOperations):
    """Of states s (N, C), 0 and 1 in the backend's real type, rows in the order of the tables."""

    def move_clusters(self, key: Key, bonds: Bonds, s: Array) -> tuple[Array, Array]:
        """One move, which leaves p as it is.

        Args:
            key: of the move.
            bonds: the tables.
            s: (N, C) states.

        Returns:
            (s, p): new states, and the probabilities of 1 that clusters gave them.
        """
        xp, backend = self._xp, self._backend
        labels = self.label_clusters(bonds, self.draw_open_bonds(backend.fold_in(key, 0), bonds, s))
        pull = self.sum_over_clusters(labels, bonds.fields[:, None] * (2 * s - 1))
        keep = self._sigmoid(pull)
        u = xp.take_along_axis(backend.uniform(backend.fold_in(key, 1), s.shape), labels, axis=0)
        up = s > 0.5
        return xp.where(u < keep, s, 1 - s), xp.where(up, keep, 1 - keep)

    def draw_open_bonds(self, key: Key, bonds: Bonds, s: Array) -> Array:
        """(E, C) which bonds open."""
        xp = self._xp
        spins = s > 0.5
        alike = xp.take(spins, bonds.ends[:, 0], axis=0) == xp.take(spins, bonds.ends[:, 1], axis=0)
        satisfied = alike == (bonds.couplings > 0)[:, None]
        level = -xp.expm1(-0.5 * xp.abs(bonds.couplings)[:, None])
        return satisfied & (self._backend.uniform(key, alike.shape) < level)

    def label_clusters(self, bonds: Bonds, open_bonds: Array) -> Array:
        """(N, C) the lowest row of each row's cluster: each takes the least of its neighbours' labels, and then the
        label of that, until nothing changes."""
        xp, (width, rows) = self._xp, bonds.neighbours.shape
        open_bonds = xp.concat([open_bonds, xp.ones((1, open_bonds.shape[1]), dtype=xp.bool)], axis=0)
        row_labels = xp.arange(rows, dtype=bonds.neighbours.dtype)[:, None]
        row_labels = row_labels + xp.zeros((1, open_bonds.shape[1]), dtype=row_labels.dtype)

        def propagate_labels(_: Index, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            def take_least_neighbour(d: Index, least: Array) -> Array:
                near = xp.take(carry[0], self._backend.take(bonds.neighbours, d), axis=0)
                is_open = xp.take(open_bonds, self._backend.take(bonds.neighbour_bonds, d), axis=0)
                return xp.where(is_open, xp.minimum(least, near), least)

            least = self._backend.fori_loop(0, width, take_least_neighbour, carry[0])
            # Pointer jumping: the label of a label is at least as low, so that path lengths halve in each round.
            least = xp.take_along_axis(least, least, axis=0)
            return least, xp.astype(xp.any(least != carry[0]), xp.int32)

        def run_rounds(_: Index, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            labels, changed, rounds = carry
            labels, changed = self._backend.fori_loop(0, changed * rounds, propagate_labels, (labels, changed))
            return labels, changed, 2 * rounds

        unit = xp.astype(xp.any(row_labels >= 0), xp.int32)
        # As many rounds as rows always suffice, though more than a dozen are rarely needed. A smaller fixed number
        # could break clusters apart, and the move would not leave p invariant.
        labels = self._backend.fori_loop(0, rows.bit_length(), run_rounds, (row_labels, unit, FIRST_ROUNDS * unit))[0]
        return labels[: bonds.fields.shape[0], :]

    def sum_over_clusters(self, labels: Array, values: Array) -> Array:
        """(N, C) the sum of `values` (N, C) over each row's cluster: sorted by label, terms are added to those before
        them at distances 1, 2, 4, …"""
        xp = self._xp
        order = xp.argsort(labels, axis=0, stable=True)
        place = xp.take_along_axis(
            xp.argsort(order, axis=0), labels, axis=0
        )  # the first row of a cluster is the row of its label
        labels, total = xp.take_along_axis(labels, order, axis=0), xp.take_along_axis(values, order, axis=0)
        step = 1
        while step < labels.shape[0]:
            ahead = xp.where(labels[step:, :] == labels[:-step, :], total[step:, :], 0.0)
            total = xp.concat([total[:-step, :] + ahead, total[-step:, :]], axis=0)
            step *= 2
        return xp.take_along_axis(total, place, axis=0)

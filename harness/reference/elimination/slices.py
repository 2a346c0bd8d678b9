"""Elimination a slice at a time: some variables are held at each of their joint states, and the sums are added up.

Each slice takes a fraction of the memory, and all of them more time than the whole (recursive conditioning with one
level: Darwiche, 2001; slicing of tensor networks: Gray and Kourtis, 2021). Slices run beside each other on all cores.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

import numpy as np

from spinbench.foundation import deadline
from spinbench.foundation.platforms import available_cores, one_blas_thread
from spinbench.reference.network import FloatArray, condition, split
from spinbench.reference.orders.order import Order, order_cost
from spinbench.reference.problem import NetworkProblem
from spinbench.reference.progress import Progress, report_progress
from spinbench.reference.solver import PrecisionError, Solver, ZeroWeightError

if TYPE_CHECKING:
    from spinbench.reference.elimination.bucket_tree import Elimination

# Largest number of slices: more would take hours where one takes a second.
MAX_SLICES = 2**14
# Cliques smaller than the largest by this factor (log2) are ignored: they hold little memory and take little time.
HEAVY_BITS = 12
# Seconds per variable of planning a slice, in Python and on one thread at a time.
PLAN_SECONDS = 4e-5


def slice_elimination(whole: Elimination, max_bytes: int, *, marginals: bool) -> SlicedElimination | None:
    """The elimination in slices that fit into memory, as many at a time as take the least time; None where `MAX_SLICES`
    do not fit, which the problem's remarks say.

    Each core that works holds a slice of its own, so that many cores may ask for far more and smaller slices than one.
    """
    cards = whole.problem.cardinalities
    cores = available_cores()
    chosen: list[int] = []
    fitting: list[SlicedElimination] = []
    for v in _by_saving(whole.order, cards):
        chosen.append(v)
        count = math.prod(cards[u] for u in chosen)
        if count > MAX_SLICES:
            if not fitting:
                whole.problem.remarks.append(f"more than {MAX_SLICES} slices would be needed, and no more are run")
            break
        sliced = SlicedElimination(whole, chosen)
        sliced.workers = min(cores, count, max_bytes // max(sliced.memory(marginals=marginals), 1))
        if sliced.workers:
            fitting.append(sliced)
        if sliced.workers == min(cores, count):
            break
    return min(fitting, key=lambda sliced: sliced.predict_seconds(marginals=marginals), default=None)


def _by_saving(order: Order, cardinalities: Sequence[int]) -> Iterator[int]:
    """Variables, of those in the largest cliques that one first which adds the least work for each bit it saves."""
    n = len(cardinalities)
    logs = np.log2(np.asarray(cardinalities, dtype=np.float64))
    cliques = [order.order[[p, *separator]] for p, separator in enumerate(order.separators)]
    heavy = [members for members in cliques if logs[members].sum() > order.log2_largest - HEAVY_BITS]
    in_clique = np.array([np.isin(np.arange(n), members) for members in heavy])
    sizes = in_clique @ logs
    while sizes.max() > 1:
        weights = np.exp2(sizes - sizes.max())
        candidates = np.flatnonzero(in_clique[sizes > sizes.max() - 1].any(axis=0))
        # Cliques without the variable are summed again for each of its states: log2 of the growth of work per bit
        # saved.
        share = weights @ in_clique[:, candidates] / weights.sum()
        overhead = np.log2(share + (1 - share) * np.exp2(logs[candidates])) / logs[candidates]
        v = int(candidates[np.argmin(overhead)])
        yield v
        sizes = sizes - in_clique[:, v] * logs[v]
        in_clique[:, v] = False


class SlicedElimination(Solver):
    """One elimination for each joint state of some variables.

    Attributes:
        variables: that are held.
        workers: slices at a time.
        count: slices in all.
    """

    name = "bucket_tree"

    def __init__(self, whole: Elimination, variables: Sequence[int], workers: int = 1) -> None:
        self.whole, self.variables, self.workers = whole, sorted(variables), workers
        self.backend = whole.backend  # type: ignore[misc]
        cards = whole.problem.cardinalities
        self.count = math.prod(cards[v] for v in self.variables)
        sliced = set(self.variables)
        self.rest = [v for v in range(len(cards)) if v not in sliced]
        place = {v: k for k, v in enumerate(self.rest)}
        self._listed = np.array([place[v] for v in whole.order.order.tolist() if v in place], dtype=np.int64)
        self._one = self._slice([0] * len(self.variables))
        self.order = self._one.order
        self.width = self.order.width
        self._running: set[Solver] = set()
        self._stopped = threading.Event()
        self._rooms = threading.local()

    @classmethod
    def build(cls, problem: object) -> Solver:
        """Never: `slice_elimination` makes them."""
        raise NotImplementedError

    def predict_seconds(self, *, marginals: bool) -> float:
        """Of all slices, so many at a time; but for what Python does for each variable, which waits for its turn."""
        turn = len(self.rest) * (PLAN_SECONDS + self.whole.variable_seconds)
        return self.count * (turn + self._one.predict_seconds(marginals=marginals) / self.workers)

    def memory(self, *, marginals: bool) -> int:
        """Of the slices that run at a time."""
        return self.workers * self._one.memory(marginals=marginals)

    def _slice(self, states: Sequence[int]) -> Elimination:
        """The elimination of one slice."""
        network = condition(self.whole.problem.network, self.variables, states)
        problem = NetworkProblem(network, self.whole.problem.name)
        order = order_cost(self._listed, network.cardinalities, problem.pairs)
        return type(self.whole)(problem, order)

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """Each slice, then the sums of all weights."""
        cards = self.whole.problem.cardinalities
        states = list(itertools.product(*(range(cards[v]) for v in self.variables)))
        logs = np.full(len(states), -np.inf)
        top, total = -np.inf, np.zeros(sum(cards[v] for v in self.rest))
        since = time.perf_counter()
        with one_blas_thread():
            for done, (k, log_z, flat) in enumerate(self._results(states, marginals=marginals), start=1):
                logs[k] = log_z
                if marginals and flat is not None:
                    # The sum so far is rescaled, so that no exponential overflows.
                    if log_z > top:
                        total *= math.exp(top - log_z)
                        top = log_z
                    total += math.exp(log_z - top) * flat
                left = (time.perf_counter() - since) * (len(states) - done) / done
                report_progress(Progress(done, len(states), left, self.memory(marginals=marginals)))
        peak = float(logs.max())
        if peak == -np.inf:
            raise ZeroWeightError
        weights = np.exp(logs - peak)
        log_z = peak + math.log(float(weights.sum()))
        if not marginals:
            return log_z, None
        return log_z, self._all_marginals(total, weights, states)

    def _results(
        self, states: list[tuple[int, ...]], *, marginals: bool
    ) -> Iterator[tuple[int, float, FloatArray | None]]:
        """(place in `states`, log Z, marginals) of each slice, as they end. An interrupt reaches the caller at once."""
        self._stopped.clear()
        pool = ThreadPoolExecutor(self.workers)
        places = {pool.submit(self._solve_slice, each, marginals=marginals): k for k, each in enumerate(states)}
        waiting = set(places)
        try:
            while waiting:
                deadline.check()
                # A short timeout, so that the deadline is checked in time.
                done, waiting = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
                for future in done:
                    yield (places[future], *future.result())
        finally:
            self.interrupt()
            pool.shutdown(wait=False, cancel_futures=True)

    def interrupt(self) -> None:
        self._stopped.set()
        for solver in list(self._running):
            solver.interrupt()

    def _solve_slice(self, states: tuple[int, ...], *, marginals: bool) -> tuple[float, FloatArray | None]:
        tree = self._slice(states)
        # Each thread reuses its own large arrays.
        tree.room = vars(self._rooms)
        # A table over the slice's variables alone rules their states out.
        if tree.problem.network.constant == -np.inf:
            return -np.inf, None
        refusal = PrecisionError("elimination was interrupted")
        for solver in (tree, *tree.fallbacks()):
            if self._stopped.is_set():
                break
            self._running.add(solver)
            try:
                return solver.solve(marginals=marginals)
            except ZeroWeightError:
                return -np.inf, None
            except PrecisionError as error:
                refusal = error
            finally:
                self._running.discard(solver)
        raise refusal

    def _all_marginals(self, rest: FloatArray, weights: FloatArray, states: list[tuple[int, ...]]) -> FloatArray:
        """Of all variables one after another, from those of the rest and the weights of all slices."""
        cards = self.whole.problem.cardinalities
        marginals = [np.empty(0)] * len(cards)
        for v, marginal in zip(self.rest, split(rest, [cards[v] for v in self.rest]), strict=True):
            marginals[v] = marginal / marginal.sum()
        for v, sliced_states in zip(self.variables, np.array(states).T, strict=True):
            marginals[v] = np.bincount(sliced_states, weights, minlength=cards[v]) / weights.sum()
        return np.concatenate(marginals)

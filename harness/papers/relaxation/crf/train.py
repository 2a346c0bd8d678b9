"""Training: the Bethe approximation of the conditional likelihood, with an L2 penalty, by L-BFGS."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spinbench.mathematics.graphs import lowering, message_layouts
from spinbench.mathematics.graphs.message_layouts import FloatArray, Incidence, incidence
from spinbench.methods.messages.arrays import MessagePassing, bethe, pair_log_z
from spinbench.models import PairwiseModel
from spinbench.papers.relaxation.crf.corpus import KINDS, IntArray, Message, build_edges_and_kinds
from spinbench.papers.relaxation.crf.tokens import extract_features

if TYPE_CHECKING:
    from scipy import sparse


# Features of fewer tokens of the training messages are left out.
MIN_COUNT = 3
# Largest change of a message (in log odds) when sum-product counts as converged.
TOLERANCE = 1e-9
# Iterations without damping, then as many with it.
MAX_SWEEPS = 1000
DAMPING = 0.5
# Restarts of L-BFGS, needed when a fixed point of sum-product vanishes and the objective jumps.
MAX_RESTARTS = 20

# SciPy's status of a failed line search.
_LINE_SEARCH_FAILED = 2


@dataclass(frozen=True, eq=False)
class Weights:
    """A trained model.

    Attributes:
        features: weight of each feature by its name.
        edges: (3,) float64, weights of the kinds of edges (`KINDS`).
        objective: penalised negative log likelihood at the end, in nats.
        iterations: of L-BFGS.
        unconverged: messages whose sum-product did not converge at the end.
        gradient: largest component of the gradient at the end.
    """

    features: dict[str, float]
    edges: FloatArray
    objective: float
    iterations: int
    unconverged: int
    gradient: float


class Objective:
    """Penalised negative log likelihood of labelled messages, with log Z by Bethe, and its gradient.

    f(θ) = Σ_m [log Z_m(θ) - score_m(θ)] + l2/2 |θ|², score = Σ_t a_t y_t + Σ_ij W_ij y_i y_j. θ: the weights of the
    vocabulary, then those of the kinds of edges; a = Xu. At a fixed point of sum-product the gradient of the Bethe
    log Z is the expectation of the features under its beliefs (Yedidia, Freeman, Weiss 2005).

    Names that occur often are coupled so strongly that sum-product can have several fixed points. Every call therefore
    starts from the same messages, those of the point that was last given to `accept`: so f is one function between
    two calls of `accept`, and follows one branch of fixed points along a descent for as long as it exists.

    Attributes:
        vocabulary: columns of X by name, sorted.
        unconverged: models whose sum-product did not converge in the last call.
    """

    def __init__(self, messages: Sequence[Message], l2: float, min_count: int = MIN_COUNT) -> None:
        features = extract_features(messages)
        counts = features.count_tokens()
        names = sorted(name for name, count in zip(features.names, counts, strict=True) if count >= min_count)
        self.vocabulary = {name: column for column, name in enumerate(names)}
        self.l2 = l2
        self.unconverged = 0
        self.x: sparse.csr_array[Any, tuple[int, int]] = features.indicator_matrix(self.vocabulary)
        self.graph = MessageGraphs.from_messages(messages)
        y = np.concatenate([message.labels for message in messages]).astype(np.float64)
        i, j = self.graph.edges.T
        together = np.bincount(self.graph.kinds, y[i] * y[j], minlength=len(KINDS))
        self.observed = np.concatenate([self.x.T @ y, together])
        self._start = np.zeros(2 * len(self.graph.edges))
        self._last = np.zeros(self.size), self._start

    @property
    def size(self) -> int:
        """How many weights there are."""
        return len(self.vocabulary) + len(KINDS)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """f and its gradient, (size,) float64."""
        count = len(self.vocabulary)
        messages = self._start.copy()
        log_z, nodes, pairs, self.unconverged = self.graph.sum_product(self.x @ theta[:count], theta[count:], messages)
        self._last = theta.copy(), messages
        expected = np.concatenate([self.x.T @ nodes, np.bincount(self.graph.kinds, pairs, minlength=len(KINDS))])
        value = log_z - float(self.observed @ theta) + 0.5 * self.l2 * float(theta @ theta)
        return value, expected - self.observed + self.l2 * theta

    def set_starting_point(self, theta: FloatArray) -> None:
        """Let the calls to come start from the messages at this point."""
        if not np.array_equal(self._last[0], theta):
            self(theta)
        self._start = self._last[1]


@dataclass(frozen=True, eq=False)
class MessageGraphs:
    """The graphs of messages side by side.

    Attributes:
        bounds: (M + 1,) int64, the tokens of each message.
        edges: (E, 2) int64, ascending. kinds: (E,) int64.
        layout: of one model that has them all, with no biases and all weights 1.
        incidence: of its messages.
    """

    bounds: IntArray
    edges: IntArray
    kinds: IntArray
    layout: message_layouts.Graph
    incidence: Incidence

    @classmethod
    def from_messages(cls, messages: Sequence[Message]) -> MessageGraphs:
        """Nodes are numbered through."""
        bounds = np.cumsum([0] + [len(message.tokens) for message in messages]).astype(np.int64)
        parts = [build_edges_and_kinds(message) for message in messages]
        # Tokens are numbered consecutively over all messages.
        edges = np.concatenate([part[0] + low for part, low in zip(parts, bounds[:-1], strict=True)])
        order = np.lexsort(edges.T[::-1])
        edges, kinds = edges[order], np.concatenate([part[1] for part in parts])[order]
        layout = lowering.lower(PairwiseModel.from_edges(np.zeros(bounds[-1]), edges, np.ones(len(edges))))
        return cls(bounds, edges, kinds, layout, incidence(layout))

    def sum_product(
        self, biases: FloatArray, weights: FloatArray, messages: FloatArray
    ) -> tuple[float, FloatArray, FloatArray, int]:
        """Sum-product, message by message until it stands still; damped from where it stands, if it does not converge.

        Args:
            biases: (N,). weights: (3,) of the kinds.
            messages: (2E,) log odds to start from, changed in place.

        Returns:
            log Z by Bethe, p(s_i = 1) (N,), p(s_i = s_j = 1) of each edge (E,), and how many models did not converge.
        """
        from spinbench.backends.numba.messages.schedules import sequential_sweep, sum_up_all
        from spinbench.backends.numba.messages.tables import make_factors, work_space

        pairs = self.layout.pairs._replace(weights=weights[self.kinds])
        graph = self.layout._replace(theta=biases, pairs=pairs)
        factors, totals = make_factors(graph, np.float64), np.empty(len(biases))
        work = work_space(factors)
        sum_up_all(factors, messages, totals)
        unconverged = 0
        for low, high in itertools.pairwise(self.bounds.tolist()):
            part = factors._replace(variables=factors.variables[low : high + 1])
            for sweep in range(2 * MAX_SWEEPS):
                damping = 0.0 if sweep < MAX_SWEEPS else DAMPING
                if sequential_sweep(part, messages, totals, damping, work) <= TOLERANCE:
                    break
            else:
                unconverged += 1
        beliefs, log_z = bethe(graph, self.incidence, messages[:, None])
        first, second = MessagePassing(np).pair_cavities(graph, totals[:, None], messages[:, None])
        both = (first + second)[:, 0] + pairs.weights
        return float(log_z[0]), beliefs[1::2, 0], np.exp(both - pair_log_z(graph, first, second)[:, 0]), unconverged


def train_weights(
    messages: Sequence[Message], l2: float = 1.0, *, iterations: int = 300, min_count: int = MIN_COUNT
) -> Weights:
    """Minimise `Objective` from zero weights; the same messages give the same weights on one machine.

    Args:
        messages: with labels.
        l2: the penalty's strength, the inverse of a Gaussian prior's variance.
        iterations: of L-BFGS, at most.
        min_count: see `MIN_COUNT`.
    """
    from scipy import optimize

    # SciPy's stubs do not accept a callable object with jac=True.
    minimize: Any = optimize.minimize
    objective = Objective(messages, l2, min_count)
    theta, iterations_done = np.zeros(objective.size), 0
    for _ in range(MAX_RESTARTS):
        solution = minimize(
            objective,
            theta,
            jac=True,
            method="L-BFGS-B",
            callback=objective.set_starting_point,
            options={"maxiter": iterations - iterations_done, "maxcor": 20, "ftol": 1e-10, "gtol": 1e-3},
        )
        theta, iterations_done = solution.x, iterations_done + int(solution.nit)
        objective.set_starting_point(theta)
        if solution.status != _LINE_SEARCH_FAILED:
            break
    value, gradient = objective(theta)
    count = len(objective.vocabulary)
    return Weights(
        dict(zip(objective.vocabulary, theta[:count].tolist(), strict=True)),
        theta[count:],
        value,
        iterations_done,
        objective.unconverged,
        float(np.abs(gradient).max()),
    )

"""Exact draws of attractive models by coupling from the past.

Propp and Wilson, "Exact sampling with coupled Markov chains and applications to statistical mechanics", Random
Structures and Algorithms 1996. Two chains begin T sweeps before now, in all ones and in all zeros, and use the same
random numbers; those of the sweep that is t before now are the same for every T. Where both are in one state now, so is
every chain that began then, whatever its state, and that state is an exact draw; else T is doubled.

Where couplings repel, variables are flipped first, and flipped back in the end. Frustrated models are refused. A draw
is finished whatever the budget says, since to stop long ones would leave the short ones, which have another law.

**A step is a draw of every chain**, and nothing is burnt in. Draws are independent, and their errors are those of
independent draws: this is what others are measured against, rather than a competitor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import (
    Array,
    Backend,
    Estimate,
    Index,
    Key,
    Method,
    MethodProfile,
    Model,
    PairwiseModel,
    Program,
    Reduction,
    Trace,
)
from spinbench.errors import UnsupportedError
from spinbench.foundation.parameters import check_choice
from spinbench.mathematics import claims, statistics
from spinbench.mathematics.graphs.sweep_layouts import (
    Scan,
    Sweep,
    by_variable,
)
from spinbench.mathematics.heat_bath.updates import HeatBath
from spinbench.methods.chain_program import IndependentSteps
from spinbench.methods.clusters.bonds import Order, check_binary
from spinbench.methods.tempering.replicas import build_pair_tables
from spinbench.methods.weighted_means import Marginals, with_bounds

# Sweeps of the first attempt. Each doubling repeats all sweeps, so that all earlier attempts together cost no more than
# the last one.
FIRST_SWEEPS = 4
# Largest number of doublings, up to 2^14 sweeps: a 64 × 64 lattice near its critical temperature takes 2^11.
MAX_DOUBLINGS = 13
# Sampling gives up if no chain has met and all would meet by the last doubling with less than this chance; the meeting
# rate of a chain is the largest for which no meeting so far is at least this likely.
MIN_MEETING_CHANCE = 0.05


class Tables(NamedTuple):
    """What `CouplingFromThePast.plan` prepares; rows are those of the sweep.

    Attributes:
        order: (N,) variable of each row.
        flip: (N,) 1 where the row's variable is flipped, else 0.
        sweep: of the flipped model.
    """

    order: Order
    flip: npt.NDArray[np.float64]
    sweep: Sweep | Scan


class State(NamedTuple):
    """Attributes: s, p (N, C) the last draws and their conditional probabilities; sweeps (C,) that were made for them;
    never_met (C,) 1 where both chains never met."""

    s: Array
    p: Array
    sweeps: Array
    never_met: Array


@dataclass(frozen=True)
class CouplingFromThePast(Method[Tables]):
    """Exact draws of attractive models by coupling from the past (Propp and Wilson 1996).

    Attributes:
        marginals: of p(s_i = 1 | rest) at the draws, or of the draws themselves.
    """

    marginals: Marginals = "rao_blackwell"

    name: ClassVar[str] = "cftp"
    summary: ClassVar[str] = "exact draws of attractive models by coupling from the past"
    profile = MethodProfile(family="clusters")

    def __post_init__(self) -> None:
        check_choice(self, "marginals", Marginals)

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """mean, square (N, C): what is averaged, and its square; draw (N, C): the last; sweeps, open (C,)."""
        summed: dict[str, Reduction] = dict.fromkeys(("mean", "square", "sweeps", "open"), "sum")
        return summed | {"draw": "last"}

    def plan(self, model: Model) -> Tables:
        """The flipped model's colours and neighbours.

        Raises:
            UnsupportedError: variables of more than two states, or a frustrated model.
        """
        assert isinstance(model, PairwiseModel)
        check_binary(self.name, model)
        flip = find_flips(self.name, model)
        attractive = flip_model(model, flip)
        pairs = build_pair_tables(attractive)
        return Tables(pairs.order, flip[pairs.order].astype(np.float64), pairs.sweep)

    def program(self, backend: Backend) -> Program:
        """Both chains over `backend`'s arrays."""
        return CoupledProgram(backend, rao_blackwell=self.marginals == "rao_blackwell").program()

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """Means of independent draws, and the draws with which batches end."""
        series, chains = trace.series("draw"), trace.total("sweeps").shape[-1]
        count = trace.samples * chains
        means = np.clip(trace.mean("mean").mean(axis=-1), 0.0, 1.0)
        variance = np.maximum(trace.mean("square").mean(axis=-1) - means**2, 0.0)
        standard = np.sqrt(variance / max(count - 1, 1))
        parts: dict[str, Any] = {
            **with_bounds(means, float(claims.t_factor(count - 1)) * standard, claims.UNSEEN / count)
        }
        parts["ess"] = statistics.effective_sample_size(means, parts["marginals_se"], count)
        draws = np.rint(np.concatenate(list(series), axis=-1)).astype(np.int8)
        never = float(trace.total("open").sum())
        doubts: tuple[str, ...] = ()
        if never:
            doubts = ("marginals not mixed",)
        ordered: dict[str, Any] = {name: by_variable(tables.order, part) for name, part in parts.items()}
        return Estimate(
            **ordered,
            r_hat=np.ones(len(means)),
            draws=(by_variable(tables.order, draws), None),
            diagnostics={"sweeps": float(trace.mean("sweeps").mean()), "never_met": never},
            doubts=doubts,
        )


class CoupledProgram(IndependentSteps):
    """Init, step and observe; all chains go back as far as the slowest needs, which changes none of the others'."""

    def __init__(self, backend: Backend, *, rao_blackwell: bool) -> None:
        super().__init__(backend)
        self._bath, self._rao_blackwell = HeatBath(backend), rao_blackwell

    def init(self, key: Key, t: Tables, start: Array) -> State:
        """Of no draw."""
        zeros, none = self._xp.zeros_like(start), self._xp.zeros_like(start[0, :])
        return State(zeros, zeros + 0.0, none, none + 0.0)

    def step(self, key: Key, t: Tables, state: State) -> State:
        """A draw of every chain."""
        xp, backend = self._xp, self._backend
        zeros = xp.zeros_like(state.s)

        def epoch(_: Index, carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            pair, back, apart, total = carry
            sweeps = apart * back

            def sweep(i: Index, pair: Array) -> Array:
                # Sweep t before the present uses the same random numbers in every attempt, which makes the final state
                # an exact draw (Propp and Wilson 1996).
                u = backend.uniform(backend.fold_in(key, sweeps - i), zeros.shape)
                return self._sweep(t.sweep, pair, xp.concat([u, u], axis=1))

            pair = backend.fori_loop(0, sweeps, sweep, xp.where(apart > 0, extremes, pair))
            high, low = self._split_pair(pair)
            any_met = xp.astype(xp.any(xp.all(high == low, axis=0)), xp.int32)
            more = xp.astype(xp.any(high != low), xp.int32) * xp.maximum(any_met, xp.astype(back < max_back, xp.int32))
            return pair, 2 * back, more, total + sweeps

        max_back = _max_sweeps_without_meeting(zeros.shape[1])
        unit = xp.astype(xp.any(zeros == 0), xp.int32)
        # A sweep of both extreme chains side by side costs little more than of one.
        extremes = xp.concat([zeros + 1, zeros], axis=1)
        # Once all chains have met, the loop has 0 sweeps: programs have no early exit, only loop counts that are
        # arrays.
        pair, _, _, total = backend.fori_loop(0, MAX_DOUBLINGS, epoch, (extremes, FIRST_SWEEPS * unit, unit, 0 * unit))
        high, low = self._split_pair(pair)
        apart = xp.astype(xp.any(high != low, axis=0), high.dtype)
        p = self._bath.conditionals(t.sweep, high)
        return State(high, p, xp.zeros_like(apart) + xp.astype(total, apart.dtype), apart)

    def observe(self, t: Tables, state: State) -> dict[str, Array]:
        """The statistics of `CouplingFromThePast.reductions`, flipped back."""
        turned = t.flip[:, None] > 0
        s = self._xp.where(turned, 1 - state.s, state.s)
        recorded = s
        if self._rao_blackwell:
            recorded = self._xp.where(turned, 1 - state.p, state.p)
        return {"mean": recorded, "square": recorded**2, "draw": s, "sweeps": state.sweeps, "open": state.never_met}

    @staticmethod
    def _split_pair(pair: Array) -> tuple[Array, Array]:
        """(N, C) each of (N, 2 C)."""
        chains = pair.shape[1] // 2
        return pair[:, :chains], pair[:, chains:]

    def _sweep(self, sweep: Sweep | Scan, s: Array, u: Array) -> Array:
        if isinstance(sweep, Scan):
            return self._bath.sweep_chunks(sweep, s, (), u, backward=False)[0]
        return self._bath.sweep_blocks(sweep, s, u)[0]


def _max_sweeps_without_meeting(chains: int) -> int:
    """After how many sweeps in which none of the chains met it is hopeless that all meet: see `MIN_MEETING_CHANCE`."""
    apart = MIN_MEETING_CHANCE ** (1 / chains)
    farthest = FIRST_SWEEPS << (MAX_DOUBLINGS - 1)
    tried = (FIRST_SWEEPS << k for k in range(MAX_DOUBLINGS))
    return next((back for back in tried if (1 - apart ** (farthest / back)) ** chains < MIN_MEETING_CHANCE), farthest)


def find_flips(method: str, model: PairwiseModel) -> npt.NDArray[np.bool_]:
    """(N,) which variables to flip, so that every coupling is 0 or more.

    In the graph of (variable, flipped or not) a coupling joins what it favours; a model is frustrated where a variable
    is joined to its own flip.

    Raises:
        UnsupportedError: the model is frustrated.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = model.num_variables
    # Edges with coupling 0 are left out: they constrain nothing and must not make a model count as frustrated.
    edges, across = model.edges[model.couplings != 0], model.couplings[model.couplings != 0] < 0
    ends = np.concatenate([edges[:, 0], edges[:, 0] + n])
    others = np.concatenate([edges[:, 1] + n * across, edges[:, 1] + n * ~across])
    graph = coo_array((np.ones(len(ends)), (ends, others)), shape=(2 * n, 2 * n))
    _, component = connected_components(graph, directed=False)
    if (frustrated := component[:n] == component[n:]).any():
        raise UnsupportedError(
            f"{method}: {model.name} is frustrated, at {int(frustrated.sum())} of {n} variables; couplings must become "
            "attractive when some variables are flipped"
        )
    return np.asarray(component[:n] > component[n:])


def flip_model(model: PairwiseModel, flip: npt.NDArray[np.bool_]) -> PairwiseModel:
    """The model of s_i, or 1 - s_i where it is flipped, but for its constant."""
    sign = np.where(flip, -1.0, 1.0)
    ends, w = model.edges, model.couplings
    pull = np.bincount(ends[:, 0], w * flip[ends[:, 1]], model.num_variables)
    pull += np.bincount(ends[:, 1], w * flip[ends[:, 0]], model.num_variables)
    couplings = np.where(w != 0, w * sign[ends[:, 0]] * sign[ends[:, 1]], 0.0)
    return PairwiseModel.from_edges(sign * (model.biases + pull), ends, couplings, name=model.name)

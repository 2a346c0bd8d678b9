"""Gibbs sampling: single-site heat-bath updates of p(s) = p*(s) / Z, with log Z from the sweep's own kernel.

A sweep updates every variable once, from p(s_i | rest); T(s' <- s) is its transition
probability and R that of the sweep in reverse order. Binary pairwise models have sweeps of their own; all other factor
graphs, of any order, with any number of states and hard zeros, are looked up in flat tables, variable by variable. A
1-of-K group of a pairwise model is one variable of such a graph.

Hard zeros may part the states into sets that single updates do not leave. Chains start from random states of positive
weight, and where the sets that they are in differ in marginals, these are not mixed. From β = 0 to 1 zeros let nobody
pass at the end, so that log Z is that of chib_bar alone, and unresolved where its overlap is small.

Marginals: the mean of s_i, or (Rao-Blackwellised) of p(s_i = 1 | rest) as of the last update of i.

log Z, for a fixed state s* of high probability:

    chib_bar p(s) T(s* <- s) = p(s*) R(s <- s*), so p*(s*) / T(s* <- s) is Z times the ratio of two laws: p at the
             chains' states, and R(. <- s*) at sweeps in reverse order from s*. Bennett's ratio joins both sides, and
             their overlap tells whether the chains know the states that carry 1 / Z (`mathematics.bennett.ratio`).
    stones   p*^β from β = 0, where Z is known, to β = 1, over rungs whose laws overlap: Bennett's ratio between
             neighbours, from sweeps that take the place of burn-in (`mathematics.stepping_stones`).
    auto     chib_bar where its overlap is seen to be large early on, else stones.
    chib     p(s*) = Σ_s p(s) T(s* <- s), so log Z = log p*(s*) - log mean_t T(s* <- s_t).
             Chib, "Marginal likelihood from the Gibbs output", JASA 1995. Of 1 / Z it is unbiased in stationarity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from spinbench.api import (
    Backend,
    Engine,
    Estimate,
    FactorGraph,
    Method,
    MethodProfile,
    Model,
    PairwiseModel,
    Program,
    Reduction,
    State,
    Trace,
)
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.foundation.parameters import check_choice, check_whole
from spinbench.mathematics.graphs.rows import compressed_rows
from spinbench.mathematics.graphs.sweep_layouts import (
    Sweep,
    by_variable,
    choose_tables,
    layout,
    scan_tables,
)
from spinbench.methods.gibbs import log_z, modes, stones
from spinbench.methods.gibbs.estimate import gibbs_estimate
from spinbench.methods.gibbs.graph_plan import GraphTables, plan_graph
from spinbench.methods.gibbs.program import GibbsProgram, ProgramOptions
from spinbench.methods.gibbs.sweeps import GraphSweeps, PairSweeps, Tables
from spinbench.methods.weighted_means import MARGINAL_STATISTICS, Marginals

Scanning = Literal["chromatic", "raster", "random"]
Sample = Literal["sweep", "update"]
LogZ = Literal["auto", "chib_bar", "stones", "chib", "none"]

PRECISION_BITS = range(8, 33)
# Largest degree of a variable whose rounded probabilities are tabulated; each neighbour doubles the table.
MAX_BIT_DEGREE = 6
# A variable is chosen by one float32 uniform number of 24 bits: above 2^22 variables some would be chosen a quarter
# less often than others.
MAX_RANDOM_VARIABLES = 2**22


@dataclass(frozen=True)
class Gibbs(Method[Tables | GraphTables]):
    """Single-site Gibbs sampling (heat bath), with log Z from the sweep's own kernel or from stepping stones.

    Attributes:
        scan: "chromatic" (colour by colour), "raster" (variable 0, 1, …) or "random" (each update at a unit drawn
            anew, as many updates a sweep as variables). T and R are sweeps by colour where the scan is random.
        sample: what counts as a sample: a "sweep" or one "update". The DHMC paper (Zhang et al., NIPS 2012)
            compares with one update a sample, and with empirical marginals.
        marginals: which estimate is reported.
        log_z: which estimate of log Z is reported. "auto" takes "chib_bar" where the chains know enough, else
            "stones", which costs no more than burn-in. "chib" finds T at every sweep, and
            reports "chib_bar", too.
        precision_bits: 0: probabilities have the resolution of the backend's numbers. 8 to 32: probabilities are
            multiples of 2^-precision_bits and 1 - 2^-precision_bits at most, as hardware with so few random bits makes
            them. Where Dobrushin's condition holds, that moves no marginal by more than 2^-precision_bits / (1 - α),
            α < 1 the largest sum of influences on a variable. It saves no time. Takes backend=numba, or jax
            with scan=chromatic; sweeps in fixed order, marginals=empirical, log_z=none, and models with at most 6
            neighbours a variable and without groups.
        threads: that share out the chains, with backend=numba; results do not depend on it. A block of chains that is
            advanced together is not split: up to 64 chains. A sweep's cell is timed on one core unless it is given
            more.
    """

    scan: Scanning = "chromatic"
    sample: Sample = "sweep"
    marginals: Marginals = "rao_blackwell"
    log_z: LogZ = "auto"
    precision_bits: int = 0
    threads: int = 1

    model_form = "either"
    profile = MethodProfile(single_site=True, family="chains at one temperature")
    name: ClassVar[str] = "gibbs"
    removed: ClassVar[Mapping[str, str]] = {
        "ladder": "log_z=chib_bar and log_z=stones know log Z at least as well",
        "log_z=chib_ms": "that estimate is gone, and log_z=chib_bar knows log Z at least as well",
    }
    heaviest = "annealed"
    summary: ClassVar[str] = "single-site Gibbs sampling; log Z by Chib's estimator or stepping stones"

    def __post_init__(self) -> None:
        for setting, choices in (("scan", Scanning), ("sample", Sample), ("marginals", Marginals), ("log_z", LogZ)):
            check_choice(self, setting, choices)
        check_whole(self, "threads", 1)
        self._check_precision_bits()
        if self.precision_bits:
            object.__setattr__(self, "model_form", "pairwise")

    def _check_precision_bits(self) -> None:
        bits = self.precision_bits
        if isinstance(bits, bool) or not isinstance(bits, int) or (bits != 0 and bits not in PRECISION_BITS):
            raise SpinbenchError(f"gibbs: precision_bits={bits!r} was given; 0 or 8 to 32 are allowed")
        if not bits:
            return
        allowed_values = {
            "marginals": ("empirical",),
            "log_z": ("none",),
            "sample": ("sweep",),
            "scan": ("chromatic", "raster"),
        }
        for setting, allowed in allowed_values.items():
            if (value := getattr(self, setting)) not in allowed:
                raise SpinbenchError(
                    f"gibbs: precision_bits={bits} was given with {setting}={value}; it takes {' or '.join(allowed)}"
                )

    @property
    def records_log_t(self) -> bool:
        """Whether T(s* <- s) is found at every step, besides at the run's looks."""
        return self.log_z == "chib"

    @property
    def may_use_stones(self) -> bool:
        """Whether stepping stones may take the place of burn-in."""
        return self.log_z in ("auto", "stones")

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """p or s: (N, C), rows in the tables' order; of factor graphs (R, C), the states that the tables name. log_t:
        (C,)."""
        names: dict[str, Reduction] = {MARGINAL_STATISTICS[self.marginals]: "sum"}
        if self.records_log_t:
            names["log_t"] = "logsumexp"
        return names

    def plan(self, model: Model) -> Tables | GraphTables:
        """Colours or raster levels, tables of neighbours, or of factors' entries, and s*.

        Raises:
            UnsupportedError: more than 2^22 variables and a random scan; groups or too many neighbours with
                precision_bits; stepping stones where there are hard zeros.
        """
        if isinstance(model, FactorGraph):
            return self._plan_graph(model)
        assert isinstance(model, PairwiseModel)
        if self.precision_bits:
            _check_rounding_support(model, self.precision_bits)
        count = model.num_variables
        if self.scan == "random" and count > MAX_RANDOM_VARIABLES:
            raise UnsupportedError(
                f"gibbs: {model.name} has {count} variables; scan=random takes at most {MAX_RANDOM_VARIABLES}, "
                "scan=chromatic any number"
            )
        plan = layout(model, "raster" if self.scan == "raster" else "chromatic")
        rows = compressed_rows(model, plan.order)
        sweep = choose_tables(model, plan, rows)
        single = None
        if self.sample == "update" or self.scan == "random":
            sequence = np.argsort(plan.order) if self.scan == "raster" else np.arange(count)
            single = scan_tables(model, plan, rows, sequence)
        mode = np.zeros(model.num_variables)
        log_weight = log_t_constant = 0.0
        if self.log_z != "none":
            mode = modes.find_pair_mode(model, plan.order, sweep)
            log_weight = float(model.log_weight(by_variable(plan.order, mode)))
            if isinstance(sweep, Sweep):
                tail = len(plan.labels) - len(sweep.last)
                # When the last blocks are updated, all other variables are already at s*: their part of log T is a
                # constant.
                log_t_constant = log_z.sum_log_conditionals(model, plan, rows, mode, int(plan.bounds[tail]))
        return Tables(plan.order, sweep, single, mode, np.array(log_weight), np.array(log_t_constant))

    def program(self, backend: Backend) -> Program:
        """Heat-bath sweeps over `backend`'s arrays; see `spinbench.methods.gibbs.program`.

        Raises:
            UnsupportedError: precision_bits or more than one thread.
        """
        for setting, default in (("precision_bits", 0), ("threads", 1)):
            if (value := getattr(self, setting)) != default:
                raise UnsupportedError(f"gibbs: {setting}={value} needs backend=numba; {backend.name} was asked for")
        options = ProgramOptions(
            random_scan=self.scan == "random",
            single_updates=self.sample == "update",
            rao_blackwell=self.marginals == "rao_blackwell",
            has_probes=self.log_z != "none",
            has_temperatures=self.may_use_stones,
            records_log_t=self.records_log_t,
        )
        pairs, graphs = PairSweeps(backend), GraphSweeps(backend)
        return GibbsProgram(backend, options, lambda t: pairs if isinstance(t, Tables) else graphs).program()

    def warm_up(
        self, tables: Tables | GraphTables, engine: Engine, state: State, steps: int, trace: Trace
    ) -> tuple[State, int]:
        """Stepping stones, where they are asked for, or needed; none where there are hard zeros."""
        if not self.may_use_stones or (isinstance(tables, GraphTables) and tables.zeros):
            return state, 0
        single = tables.sweep.single if isinstance(tables, GraphTables) else tables.single
        steps_per_sweep = 1
        if self.sample == "update" and single is not None:
            steps_per_sweep = len(single.rows)
        mode_log_weight = None
        if self.log_z == "auto":
            mode_log_weight = float(tables.mode_log_weight)
        return stones.warm_up(engine, state, steps, steps_per_sweep, mode_log_weight, trace)

    def estimate(self, model: Model, tables: Tables | GraphTables, trace: Trace) -> Estimate:
        """Marginals with what they may claim, R-hat and effective sample sizes; log Z by what ran."""
        assert isinstance(model, PairwiseModel | FactorGraph)
        return gibbs_estimate(model, tables, trace, self.log_z, single_updates=self.sample == "update")

    def _plan_graph(self, model: FactorGraph) -> GraphTables:
        if self.log_z == "stones" and model.has_zeros:
            raise UnsupportedError(
                f"gibbs: {model.name} has hard zeros, over which log_z=stones has no way up; log_z=chib_bar takes it"
            )
        return plan_graph(
            model,
            raster=self.scan == "raster",
            single_updates=self.sample == "update" or self.scan == "random",
            needs_mode=self.log_z != "none",
        )


def _check_rounding_support(model: PairwiseModel, bits: int) -> None:
    if model.groups:
        raise UnsupportedError(f"gibbs: {model.name} has 1-of-K groups, which precision_bits={bits} does not take")
    if (degree := int(model.degrees.max(initial=0))) > MAX_BIT_DEGREE:
        raise UnsupportedError(
            f"gibbs: a variable of {model.name} has {degree} neighbours; precision_bits={bits} takes at most "
            f"{MAX_BIT_DEGREE}, precision_bits=0 any number"
        )

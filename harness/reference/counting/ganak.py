"""Exact answers by weighted model counting, for models whose hard zeros leave less than their width promises.

Counts are those of Ganak (pyganak), whose results are doubles: each formula is scaled so that its count is one. Ganak
recognises components of a formula by hashes of 64 bits or more, which two of them share with negligible probability
(Sharma, Roy, Soos and Meel, "GANAK: a scalable probabilistic exact model counter", IJCAI 2019).
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from spinbench.foundation import deadline, plugins, remarks
from spinbench.foundation.child import DiedError, OverdueError, run_in_child
from spinbench.reference.counting.choices import median_choices
from spinbench.reference.counting.encoding import Formula, encode
from spinbench.reference.network import FloatArray
from spinbench.reference.orders import goatd
from spinbench.reference.problem import MissingPackageError, NotApplicableError, Problem
from spinbench.reference.progress import Progress, report_progress
from spinbench.reference.solver import GaveUpError, PrecisionError, Solver, ZeroWeightError

LOG2 = math.log(2)
# Largest k of a factor 2^k that doubles hold.
MAX_EXPONENT = 1000
# Smaller counts come near denormal numbers, which have fewer digits.
SMALLEST = 2.0**-960
# Share of the time for marginals after which their total is predicted; counts given a state are mostly shorter.
TRIAL = 0.1
# Factor 2^STEP between trial scales, less than the range from `SMALLEST` to infinity: no count falls between two.
STEP = 1900
# Solvers predicted to be faster than this (seconds) go first: the time of counting cannot be predicted.
MIN_SECONDS = 10.0
# Limit in seconds for log Z if no deadline is earlier.
MAX_SECONDS = 60.0
# log2 of the states of the widest part, after its zeros, that Ganak counts in a second. Of 27 formulas of UAI-2014 and
# random ones it counts 5 within a second, and of the others in 20 s some of 2^17 states or fewer and none of more.
LOG2_STATES_PER_SECOND = 15
# Limit in seconds for log Z where counting is hopeless.
HOPELESS_SECONDS = 1.0
# Time limit of all marginals, in multiples of the time of log Z.
MARGINALS_OF_LOG_Z = 10.0
# Longest wait in seconds: waiting for processes accepts no infinity.
MAX_WAIT = 1e6
# Memory of a count; linkage_23 of UAI-2014, with a width of 33, takes no more.
MIN_BYTES = 2**26
# Largest number of table entries: the encoding visits each in Python.
MAX_ENTRIES = 2**22
# Smallest share of tables with zeros among those over several variables: with fewer, counting is a slow form of
# elimination.
MIN_SHARE = 0.25


class Task(NamedTuple):
    """What a child process is asked.

    Attributes:
        formula: to count.
        log_count: of the formula; None: it is what is asked for, else the probabilities of literals.
        seconds: for probabilities of literals.
        most_bytes: that the process may take beside what it has when it begins.
        seed: of Ganak's choices, which change its time alone.
    """

    formula: Formula
    log_count: float | None
    seconds: float
    most_bytes: float
    seed: int = 0


def work(task: Task) -> Iterator[float | FloatArray]:
    """In a child process: one answer, with limited memory, and nothing printed."""
    # Python's own handler would wait for the end of the count.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Ganak prints a message for a count of zero.
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)
    _limit_memory(task.most_bytes)
    try:
        if task.log_count is None:
            yield compute_log_count(task.formula, task.seed)
        else:
            yield compute_marginals(task.formula, task.log_count, task.seed, task.seconds)
    except RuntimeError as error:
        # Ganak raises it for several reasons, lack of memory among them.
        raise MemoryError(str(error)) from None


def compute_log_count(formula: Formula, seed: int = 0) -> float:
    """The log of the weighted count.

    Raises:
        ZeroWeightError: no assignment satisfies the clauses.
        PrecisionError: Ganak returned what is no count.
    """
    exponent = -round(formula.log_guess / LOG2)
    while True:
        count = _count(formula, exponent, (), seed)
        if not count >= 0:
            raise PrecisionError(f"ganak counted {count}, which is no number of any use")
        if SMALLEST < count < math.inf:
            return math.log(count) - exponent * LOG2
        if count == 0 and not _is_satisfiable(formula, seed):
            raise ZeroWeightError
        exponent += -STEP if count == math.inf else STEP


def compute_marginals(formula: Formula, log_count: float, seed: int = 0, seconds: float = math.inf) -> FloatArray:
    """Probabilities of all variables' states, one after another: a count for each state but a variable's first.

    Raises:
        GaveUpError: the counts of the first tenth of the time, or more, foretell that all of them take longer.
    """
    begin, number = time.perf_counter(), sum(len(literals) - 1 for literals in formula.literals)
    exponent = -round(log_count / LOG2)
    total = math.exp(log_count + exponent * LOG2)
    marginals: list[float] = []
    for variable, literals in enumerate(formula.literals):
        spent, done = time.perf_counter() - begin, len(marginals) - variable
        if spent > TRIAL * seconds and spent * number > seconds * done:
            raise GaveUpError("ganak's counts of marginals take too long")
        shares = [min(_count(formula, exponent, (literal,), seed) / total, 1.0) for literal in literals[1:]]
        marginals += [max(1.0 - sum(shares), 0.0), *shares]
    return np.array(marginals)


def _count(formula: Formula, exponent: int, assumptions: tuple[int, ...], seed: int) -> float:
    """The count of what satisfies the assumptions, too, times 2^exponent; 0 or inf beyond the range of doubles."""
    counter = _load_pyganak().WeightedCounter(seed=seed)
    factors = [math.copysign(MAX_EXPONENT, exponent)] * (abs(exponent) // MAX_EXPONENT)
    factors.append(exponent - sum(factors))
    scales = range(formula.num_propositions + 1, formula.num_propositions + len(factors) + 1)
    counter.new_vars(formula.num_propositions + len(factors))
    counter.add_clauses(formula.clauses)
    counter.add_clauses([[literal] for literal in (*assumptions, *scales)])
    for literal, weight in formula.weights.items():
        counter.set_lit_weight(literal, weight)
    for scale, factor in zip(scales, factors, strict=True):
        counter.set_lit_weight(scale, math.ldexp(1.0, int(factor)))
        counter.set_lit_weight(-scale, 1.0)
    return float(counter.count())


def _load_pyganak() -> Any:
    """The package, whose presence alone was known so far.

    Raises:
        GaveUpError: it does not load, as where a library of the system is missing.
    """
    try:
        import pyganak
    except ImportError as error:
        raise GaveUpError(f"pyganak is installed and does not load ({error})") from None
    return pyganak


def _is_satisfiable(formula: Formula, seed: int) -> bool:
    """By the exact number of values that one proposition takes."""
    counter = _load_pyganak().Counter(seed=seed)
    counter.new_vars(formula.num_propositions)
    counter.add_clauses(formula.clauses)
    counter.set_sampling_set([1])
    return bool(counter.count())


def _limit_memory(most_bytes: float) -> None:
    """Where the system tells how much there is already, and keeps the limit: a fork begins with its parent's."""
    try:
        import resource

        with open("/proc/self/statm") as file:
            present = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if most_bytes < 2**62 and (hard == resource.RLIM_INFINITY or present + most_bytes < hard):
        resource.setrlimit(resource.RLIMIT_AS, (present + int(most_bytes), hard))


class Ganak(Solver):
    """Ganak on the model's formula, in a process of its own, which ends with the time or the memory that is allowed.

    Attributes:
        most_seconds: for log Z; the deadline, where there is one, counts, too.
    """

    name = "ganak"
    backend: ClassVar[str] = "ganak"
    can_sample: ClassVar[bool] = False
    predictable: ClassVar[bool] = False
    width = None
    seconds = MIN_SECONDS
    most_seconds = MAX_SECONDS

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @classmethod
    def build(cls, problem: Problem) -> Ganak:
        if not plugins.is_there("pyganak"):
            raise MissingPackageError("the package pyganak: pip install pyganak (Python 3.11 to 3.13)")
        if (entries := problem.flat.values.size) > MAX_ENTRIES:
            raise NotApplicableError(f"tables of {MAX_ENTRIES} entries in all, and this model has {entries}")
        return cls(problem)

    @classmethod
    def passed_by(cls, problem: Problem) -> bool:
        """Whether too few tables have zeros."""
        flat = problem.flat
        if not np.isneginf(flat.values).any():
            return True
        several = np.diff(flat.start) > 1
        zeros = np.logical_or.reduceat(np.isneginf(flat.values), flat.offset[:-1])
        return bool((zeros & several).sum() < MIN_SHARE * several.sum())

    def predict_seconds(self, *, marginals: bool) -> float:
        """`seconds`, or what it may take where that is less."""
        return min(self.seconds, self.most_seconds)

    def memory(self, *, marginals: bool) -> int:
        """The least; the process ends where it needs more than is allowed."""
        return MIN_BYTES

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """log Z, and marginals where a count for each state fits into the time; else they are NaN."""
        begin = time.perf_counter()
        formula = encode(self.problem.network)
        limit, reason = self._limit(formula)
        report_progress(Progress(0, 1, math.nan, MIN_BYTES, limit_seconds=limit))
        log_count = float(self._ask(formula, None, limit, reason))
        seconds = time.perf_counter() - begin
        flat = None
        if marginals:
            room = min(max(MARGINALS_OF_LOG_Z * seconds, limit - seconds), deadline.left() - seconds)
            flat = self._marginals(formula, log_count, room)
        return formula.log_scale + log_count, flat

    def _limit(self, formula: Formula) -> tuple[float, str]:
        """Seconds for log Z, and why they are few."""
        limit = min(self.most_seconds, deadline.left())
        most_choices = LOG2_STATES_PER_SECOND + math.log2(max(limit, HOPELESS_SECONDS))
        if self.is_named or limit < HOPELESS_SECONDS or self.problem.order.log2_largest <= most_choices:
            return limit, ""
        if (choices := median_choices(formula, _widest_part(self.problem))) <= most_choices:
            return limit, ""
        return HOPELESS_SECONDS, f", and more would not help: its zeros leave 2^{choices:.0f} states of the widest part"

    def _marginals(self, formula: Formula, log_count: float, seconds: float) -> FloatArray:
        try:
            return np.asarray(self._ask(formula, log_count, seconds))
        except GaveUpError:
            return np.full(sum(self.problem.cardinalities), np.nan)

    def _ask(self, formula: Formula, log_count: float | None, seconds: float, reason: str = "") -> Any:
        """What the child process answers."""
        task = Task(formula, log_count, seconds, self.most_bytes)
        try:
            with contextlib.closing(run_in_child(work, task, min(seconds, MAX_WAIT))) as news:  # type: ignore[type-var]
                return next(each for each in news if each is not None)
        except OverdueError:
            duration = remarks.format_seconds(seconds)
            raise GaveUpError(f"ganak had not finished counting after {duration}{reason}") from None
        except (DiedError, MemoryError):
            raise GaveUpError("ganak ended early, as it does where memory runs out (max_gib)") from None


def _widest_part(problem: Problem) -> Sequence[int]:
    """The variables of the largest clique along the order; of a tree decomposition, where that is out of reach."""
    if separators := problem.order.separators:
        place = max(range(len(separators)), key=lambda p: len(separators[p]))
        return cast("list[int]", problem.order.order[[place, *separators[place]]].tolist())
    return goatd.widest_bag(problem.cardinalities, problem.pairs) if goatd.is_installed() else ()

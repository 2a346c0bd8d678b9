"""Counts by Ganak (pyganak), whose results are doubles: each formula is scaled so that its count is one.

Ganak recognises components of a formula by hashes of 64 bits or more, which two of them share with negligible
probability (Sharma, Roy, Soos and Meel, "GANAK: a scalable probabilistic exact model counter", IJCAI 2019).
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from spinbench.reference.counting.encoding import Formula
from spinbench.reference.network import FloatArray
from spinbench.reference.solver import GaveUpError, PrecisionError, ZeroWeightError

LOG2 = math.log(2)
MAX_EXPONENT = 1000
"""Of a factor 2^k that doubles hold."""
SMALLEST = 2.0**-960
"""Counts below it come near the denormal numbers, which have fewer digits."""
TRIAL = 0.1
"""Of the time for marginals, after which it is foretold how long they take: counts given a state are mostly shorter."""
STEP = 1900
"""Doublings to the next scale: fewer than there are from `SMALLEST` to infinity, so that no count is stepped over."""


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
    with open(os.devnull, "wb") as nothing:  # Ganak prints counts of zero
        os.dup2(nothing.fileno(), 1)
    _limit_memory(task.most_bytes)
    try:
        if task.log_count is None:
            yield compute_log_count(task.formula, task.seed)
        else:
            yield compute_marginals(task.formula, task.log_count, task.seed, task.seconds)
    except RuntimeError as error:  # what C++ raises, want of memory among it
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
    from pyganak import WeightedCounter

    counter = WeightedCounter(seed=seed)
    factors = [math.copysign(MAX_EXPONENT, exponent)] * (abs(exponent) // MAX_EXPONENT)
    factors.append(exponent - sum(factors))
    scales = range(formula.num_propositions + 1, formula.num_propositions + len(factors) + 1)
    counter.new_vars(formula.num_propositions + len(factors))
    counter.add_clauses(chain(formula.clauses, ([literal] for literal in (*assumptions, *scales))))
    for literal, weight in formula.weights.items():
        counter.set_lit_weight(literal, weight)
    for scale, factor in zip(scales, factors, strict=True):
        counter.set_lit_weight(scale, math.ldexp(1.0, int(factor)))
        counter.set_lit_weight(-scale, 1.0)
    return float(counter.count())


def _is_satisfiable(formula: Formula, seed: int) -> bool:
    """By the exact number of values that one proposition takes."""
    from pyganak import Counter

    counter = Counter(seed=seed)
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

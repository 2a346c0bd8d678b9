"""How much chance would choose in the widest part of a model with zeros, which tells whether counting is hopeless.

Whichever way it goes, a count meets about as many cases as the variables of the widest part have states that no clause
rules out. Their number is estimated as Knuth does it for search trees ("Estimating the efficiency of backtrack
programs", 1975): the variables get random states, one after another, and what follows from each by unit propagation is
no choice. A trial ends at a contradiction, so that the least of them says little.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from spinbench.reference.counting.encoding import Formula

# Number of random assignments.
N_TRIALS = 8


def median_choices(formula: Formula, variables: Sequence[int], seed: int = 0) -> float:
    """log2 of the states among which chance chooses for some variables, in the median trial, the lower one of two."""
    clauses_by_literal = defaultdict(list)
    for number, clause in enumerate(formula.clauses):
        for literal in clause:
            clauses_by_literal[literal].append(number)
    rng = np.random.default_rng(seed)
    orders: Iterator[list[int]] = (rng.permutation(variables).tolist() for _ in range(N_TRIALS))
    choices = sorted(_count_choices(formula, clauses_by_literal, order, rng) for order in orders)
    return choices[(N_TRIALS - 1) // 2]


def _count_choices(
    formula: Formula, clauses_by_literal: dict[int, list[int]], variables: Sequence[int], rng: np.random.Generator
) -> float:
    """The same of one trial, up to a conflict."""
    true: set[int] = set()
    left = [len(clause) for clause in formula.clauses]
    waiting = [clause[0] for clause in formula.clauses if len(clause) == 1]
    bits = 0.0
    for variable in variables:
        while waiting:
            literal = waiting.pop()
            if -literal in true:
                return bits
            if literal in true:
                continue
            true.add(literal)
            for number in clauses_by_literal.get(-literal, ()):
                left[number] -= 1
                if left[number] == 1:
                    waiting += (other for other in formula.clauses[number] if -other not in true)
        possible = [literal for literal in formula.literals[variable] if -literal not in true]
        bits += math.log2(len(possible))
        waiting.append(possible[rng.integers(len(possible))])
    return bits

"""From tables to a weighted formula in conjunctive normal form, whose weighted count is Z.

A state of a variable is a literal: one proposition for two states, else one for each, of which exactly one holds. An
entry of weight 0 is a clause. An entry of another weight w than the largest of its table implies a parameter, one for
each table and distinct weight, which has weight w where it holds and 1 - w where not: it counts as w where it is
implied and as 1 elsewhere, without clauses for the other direction. Sang, Beame and Kautz, "Performing Bayesian
inference by weighted model counting", AAAI 2005; Chavira and Darwiche, "On probabilistic inference by weighted model
counting", Artificial Intelligence 2008. A table that is a clause comes back as this one clause.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from spinbench.reference.network import FloatArray, Network
from spinbench.reference.solver import ZeroWeightError

# Largest log weight of one parameter: exp(-745) is zero in float64. Smaller weights become products of several
# parameters.
MAX_LOG_WEIGHT = 700.0

# A set of states per axis of a table; stands for all entries at their combinations.
Block = tuple[tuple[int, ...], ...]
# Log weights relative to the table's largest one, -inf among them, each with the blocks of entries that have it.
Pattern = list[tuple[float, list[Block]]]


@dataclass
class Formula:
    """A weighted formula.

    Attributes:
        literals: of each variable's states.
        clauses: of literals; proposition v is v where it holds and -v where not.
        weights: of literals; others have weight 1.
        num_propositions: how many there are.
        log_scale: log Z less the log of the weighted count.
        log_guess: the log of the count if tables were independent; 0 for a Bayesian network without evidence.
    """

    literals: list[list[int]] = field(default_factory=list)
    clauses: list[list[int]] = field(default_factory=list)
    weights: dict[int, float] = field(default_factory=dict)
    num_propositions: int = 0
    log_scale: float = 0.0
    log_guess: float = 0.0

    def add_proposition(self) -> int:
        self.num_propositions += 1
        return self.num_propositions

    def add_variable(self, states: int) -> None:
        self.log_guess += math.log(states)
        if states == 2:
            proposition = self.add_proposition()
            self.literals.append([-proposition, proposition])
            return
        literals = [self.add_proposition() for _ in range(states)]
        self.literals.append(literals)
        self.clauses.append(literals)
        self.clauses += ([-a, -b] for a, b in itertools.combinations(literals, 2))

    def add_parameter(self, log_weight: float) -> list[int]:
        """Propositions that together have this weight, below 1, where they are implied, and 1 elsewhere."""
        count = math.ceil(-log_weight / MAX_LOG_WEIGHT)
        weight = math.exp(log_weight / count)
        propositions = [self.add_proposition() for _ in range(count)]
        for proposition in propositions:
            self.weights |= {proposition: weight, -proposition: 1.0 - weight}
        return propositions

    def deny(self, scope: tuple[int, ...], block: Block) -> list[int]:
        """The clause that no entry of the block holds."""
        clause: list[int] = []
        for variable, states in zip(scope, block, strict=True):
            literals = self.literals[variable]
            if len(states) == 1:
                clause.append(-literals[states[0]])
            else:
                clause += (literal for state, literal in enumerate(literals) if state not in states)
        return clause


def encode(network: Network) -> Formula:
    """The formula of a network.

    Raises:
        ZeroWeightError: a table has no entry but zeros.
    """
    formula = Formula(log_scale=network.constant)
    patterns: dict[tuple[tuple[int, ...], bytes], Pattern] = {}  # cache of patterns: models repeat tables
    for states in network.cardinalities:
        formula.add_variable(states)
    for scope, table in network.tables.items():
        top = float(table.max())
        if top == -math.inf:
            raise ZeroWeightError
        formula.log_scale += top
        relative = np.ascontiguousarray(table - top)
        formula.log_guess += math.log(np.exp(relative).mean())
        if len(scope) == 1 and relative.min() >= -MAX_LOG_WEIGHT:
            literals = formula.literals[scope[0]]
            formula.weights |= {-literal: 1.0 for literal in literals}
            formula.weights |= zip(literals, np.exp(relative).tolist(), strict=True)
            continue
        key = relative.shape, relative.tobytes()
        if key not in patterns:
            patterns[key] = _pattern(relative)
        for log_weight, blocks in patterns[key]:
            denials = [formula.deny(scope, block) for block in blocks]
            if log_weight == -math.inf:
                formula.clauses += denials
            else:
                implied = formula.add_parameter(log_weight)
                formula.clauses += ([*denial, parameter] for denial in denials for parameter in implied)
    return formula


def _pattern(relative: FloatArray) -> Pattern:
    """Blocks of the weights of a table, below the largest one; zeros may belong to any of them."""
    zero = np.isneginf(relative)
    weights = [value for value in np.unique(relative).tolist() if math.exp(value) < 1.0 or value < -1.0]
    return [(value, cover(relative == value, (relative == value) | zero)) for value in weights]


def cover(entries: npt.NDArray[np.bool_], allowed: npt.NDArray[np.bool_]) -> list[Block]:
    """Blocks that hold all of `entries` and nothing but `allowed`, none of which could be larger: prime implicants.

    They are found greedily and may overlap; the fewest would take a search.
    """
    left = entries.copy()
    blocks: list[Block] = []
    while left.any():
        first = [int(state) for state in np.unravel_index(int(left.argmax()), left.shape)]
        block: list[tuple[int, ...]] = []
        rest = allowed  # over the axes from this one on, for all that the block has of those before
        for axis, state in enumerate(first):
            line: tuple[slice | int, ...] = slice(None), *first[axis + 1 :]
            fitting = np.flatnonzero(rest[line]).tolist()
            block.append((state, *(other for other in fitting if other != state)))
            rest = np.asarray(rest[fitting].all(axis=0))
        left[np.ix_(*block)] = False
        blocks.append(tuple(block))
    return blocks

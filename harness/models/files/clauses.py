"""Clauses of DIMACS files, and the factor graph of weighted ones.

A clause of k literals is a table of 2^k entries. Where those of long clauses would be too large, each is split: a
variable of its own is true where any of the first literals is, and stands for them in what is left of the clause
(Tseitin, 1968). It is a function of the others, so that log Z and the law of the file's variables are the same; the
model's origin leaves it out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.factor_graph import Factor, FactorGraph
from spinbench.models.files.format import MAX_ENTRIES
from spinbench.models.files.text import Tokens
from spinbench.models.origin import Literals, Origin

# Limit of the table entries of clauses longer than `PART` that stay whole; further ones are split. Splitting adds
# variables that are functions of others, between which single-variable updates move less freely, and up to doubles
# Ganak's queries.
MAX_WHOLE_ENTRIES = 2**21
# Number of variables of the tables into which a clause is split.
PART = 6
# Largest number of variables that a file may declare without mentioning them.
MAX_UNMENTIONED_VARIABLES = 2**20


@dataclass
class ClauseParser:
    """What is read from a file's tokens: a weight (unless all have the same), literals and 0, again and again.

    Attributes:
        tokens: of the file.
        beta: inverse temperature.
        clauses: (weight, literals by ascending variable) of those that some state falsifies.
        constant: what clauses without literals add to log Z.
        count: of all clauses.
        largest: variable of any.
    """

    tokens: Tokens
    beta: float
    clauses: list[tuple[float, list[int]]] = field(default_factory=list)
    constant: float = 0.0
    count: int = 0
    largest: int = 0

    def read(self, top: float, num_variables: int | None, weight: float | None = None) -> None:
        """
        Args:
            top: the weight from which on a clause is hard.
            num_variables: that the file claims.
            weight: of all clauses; None: each begins with its own.

        Raises:
            ModelError: with line and token.
        """
        values = self.tokens.values
        zeros = np.flatnonzero(values == 0)
        position = 0
        max_variable = 2**31 if num_variables is None else num_variables
        while position < self.tokens.size:
            begin, own = position, weight
            if own is None:
                begin, own = position + 1, float(values[position])
            after = int(np.searchsorted(zeros, begin))
            if after == len(zeros):
                raise self.tokens.error(self.tokens.size, "the 0 that ends a clause is missing")
            stop = int(zeros[after])
            if not (own >= 0 and (own >= top or np.isfinite(self.beta * own))):
                raise self.tokens.error(position, "the weight of a clause must be a number, 0 or more")
            literals = self.tokens.integers(begin, stop, "a literal", -max_variable, max_variable).tolist()
            self._add_clause(position, own if own < top else np.inf, sorted(set(literals), key=abs))
            self.count += 1
            position = stop + 1

    def _add_clause(self, position: int, weight: float, literals: list[int]) -> None:
        self.largest = max([self.largest, *map(abs, literals)])
        # A clause with a variable and its negation is always true.
        if len({abs(literal) for literal in literals}) < len(literals):
            return
        if literals:
            self.clauses.append((weight, literals))
        elif weight == np.inf:
            raise self.tokens.error(position, "a hard clause without literals is always falsified, so Z = 0")
        else:
            self.constant -= self.beta * weight

    def check_count(self, claimed: int, line: int) -> None:
        """Whether there are as many clauses as a line of the file claims.

        Raises:
            ModelError: there are not.
        """
        if self.count != claimed:
            raise ModelError(
                f"{self.tokens.source}, line {line}: {claimed} clauses are claimed, but there are {self.count}"
            )

    def count_variables(self, declared: int | None) -> int:
        """How many variables there are.

        Raises:
            ModelError: none, or so many that a file of this length says nothing about most.
        """
        n = self.largest if declared is None else declared
        if n < 1:
            raise ModelError(f"{self.tokens.source}: no clause names a variable")
        if n > (max_variables := max(MAX_UNMENTIONED_VARIABLES, self.tokens.size)):
            raise ModelError(
                f"{self.tokens.source}: {n} variables are claimed; a file of this length tells of {max_variables}"
            )
        return n

    def build_model(
        self,
        num_variables: int,
        name: str,
        factors: tuple[Factor, ...] = (),
        *,
        part: int = PART,
        max_whole_entries: int = MAX_WHOLE_ENTRIES,
    ) -> FactorGraph:
        """The factor graph of all clauses.

        Args:
            num_variables: of the file.
            name: the model's.
            factors: that it has beside the clauses.
            part: variables of the tables that clauses are split into.
            max_whole_entries: of the tables of longer clauses that are not split; short ones go first.

        Raises:
            ModelError: the tables have more than `MAX_ENTRIES` entries.
        """
        tables = _ClauseTables(self.beta, num_variables, part, self._longest_whole(part, max_whole_entries))
        for weight, literals in self.clauses:
            tables.add_clause(weight, literals)
            if tables.entries > MAX_ENTRIES:
                raise ModelError(
                    f"{self.tokens.source}: the tables of its clauses have more than {MAX_ENTRIES} entries"
                )
        total, functions = num_variables + len(tables.functions), tuple(tables.functions)
        file_labels = tuple(range(1, num_variables + 1))
        origin = None
        if functions:
            origin = Origin.with_functions((2,) * num_variables, functions, file_labels)
        labels = tuple(range(1, total + 1))
        return FactorGraph((2,) * total, (*factors, *tables.factors), self.constant, name, labels, origin)

    def _longest_whole(self, part: int, max_whole_entries: int) -> int:
        """The number of literals up to which clauses are not split."""
        counts = np.bincount([len(literals) for _, literals in self.clauses], minlength=part + 1)
        counts[: part + 1] = 0
        # Limited to 2^1000: the largest float64 is just below 2^1024.
        entries = np.cumsum(counts * np.exp2(np.minimum(np.arange(len(counts)), 1000)))
        return max(part, int(np.searchsorted(entries, max_whole_entries, side="right")) - 1)


@dataclass
class _ClauseTables:
    """The factors of clauses.

    Attributes:
        beta: inverse temperature.
        num_variables: of the file.
        part: variables of the tables that long clauses are split into.
        longest: the number of literals up to which they are not.
        factors: so far.
        functions: variables behind the file's, each true where any of some literals is.
        entries: of all tables.
    """

    beta: float
    num_variables: int
    part: int
    longest: int
    factors: list[Factor] = field(default_factory=list)
    functions: list[Literals] = field(default_factory=list)
    entries: int = 0
    _tables: dict[tuple[float | None, tuple[int, ...]], npt.NDArray[np.float64]] = field(default_factory=dict)

    def add_clause(self, weight: float, literals: list[int]) -> None:
        """With the weight that falsifying it costs; np.inf: it is hard."""
        if len(literals) > self.longest:
            while len(literals) > self.part:
                first, literals = literals[: self.part - 1], literals[self.part - 1 :]
                self.functions.append(tuple((abs(literal) - 1, int(literal > 0)) for literal in first))
                literals = [self.num_variables + len(self.functions), *literals]
                self._add_factor(None, [*first, literals[0]])
        self._add_factor(weight, literals)

    def _add_factor(self, weight: float | None, literals: list[int]) -> None:
        """Of a clause; None: of what says that the last variable is true where any of the other literals is."""
        falsified = tuple(int(literal < 0) for literal in literals)
        # Equal clauses share one table.
        key = weight, falsified
        if key not in self._tables:
            table = np.zeros((2,) * len(falsified))
            if weight is None:
                # The last (auxiliary) variable is 1, unless all literals are false; then it is 0.
                table[..., 0] = -np.inf
                table[falsified[:-1]] = 0.0, -np.inf
            else:
                table[falsified] = -np.inf if weight == np.inf else -self.beta * weight
            table.setflags(write=False)
            self._tables[key] = table
        self.factors.append(Factor(tuple(abs(literal) - 1 for literal in literals), self._tables[key]))
        self.entries += self._tables[key].size

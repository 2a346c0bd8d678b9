"""The formats of models (`.uai`) and of answers of the UAI inference competitions of 2008 to 2022."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.convert import to_factor_graph
from spinbench.models.factor_graph import Factor, FactorArrays, FactorGraph
from spinbench.models.files.format import MAX_UNMENTIONED_STATES, Format, ModelFile
from spinbench.models.files.text import SMALLEST_NORMAL, Tokens, parse_log_weights
from spinbench.models.files.uai_layout import find_scopes, find_tables, take_diagonals
from spinbench.models.pairwise import PairwiseModel

FloatArray = npt.NDArray[np.float64]
Entries = Callable[[Tokens, slice, npt.ArrayLike], FloatArray]
# A "c" followed by a blank; a "c" that begins a word is no comment.
_COMMENT = re.compile(rb"(?m)^c(?!\S)[^\n]*")
_MARK = re.compile(rb"#[^\n]*")
_PREAMBLE = re.compile(rb"(?:\s|^c(?!\S)[^\n]*\n)*(?:MARKOV|BAYES)(?!\S)", re.IGNORECASE | re.MULTILINE)
# One nat inside the range of normal float64 numbers, since sums of shifts round.
LOG_TINY, LOG_HUGE = math.log(SMALLEST_NORMAL) + 1.0, math.log(np.finfo(np.float64).max) - 1.0


class UAI(Format):
    """Preamble MARKOV or BAYES (tables are read alike); lines that start with "c ", and what follows #, are comments.

    A variable that a factor names twice has one state: of the table the diagonal counts.
    """

    suffixes = (".uai",)
    summary = "the UAI competitions' format: factors of any order and number of states"

    def recognises(self, head: bytes) -> bool:
        return _PREAMBLE.match(head.removeprefix(b"\xef\xbb\xbf")) is not None

    def read(self, file: ModelFile) -> FactorGraph:
        data = file.text()
        if b"c" in data:
            data = _COMMENT.sub(b"", data)
        with_marks = b"#" in data
        if with_marks:
            data = _MARK.sub(b"", data)
        header = re.match(rb"\s*(\S*)", data)
        # The pattern also matches the empty string.
        assert header is not None
        if header.group(1).upper() not in (b"MARKOV", b"BAYES"):
            preamble = header.group(1)[:24].decode(errors="replace")
            line = data.count(b"\n", 0, header.start(1)) + 1
            raise ModelError(f"{file.name}, line {line}, token {preamble!r}: a UAI model begins with MARKOV or BAYES")
        model = _parse_model(Tokens(data, file.name, start=header.end()), file.stem, self.parse_log_entries)
        most = 2 if header.group(1).upper() == b"BAYES" else 1
        if with_marks and any(len(factor.scope) > most for factor in model.factors):
            raise ModelError(
                f"{file.name}: comments that begin with # are pyAgrum's, which does not write tables of {most + 1} "
                "variables and more in this format's order; save the network as .bif, or take the comments out where "
                "the first variable of each table is the slowest"
            )
        return model

    def write(self, model: PairwiseModel | FactorGraph) -> bytes:
        return format_uai(model).encode()

    @staticmethod
    def parse_log_entries(tokens: Tokens, indices: slice, counts: npt.ArrayLike) -> FloatArray:
        """Logarithms of the weights in the tables; as `parse_log_weights`."""
        return parse_log_weights(tokens, indices, counts)


class LogUAI(UAI):
    """`UAI` with natural logarithms of the weights in its tables, -inf for 0, as toulbar2 reads and writes them.

    Nothing in such a file tells it from one of weights, so that its name has to."""

    suffixes = (".lg",)
    summary = "toulbar2's: the UAI competitions' format with natural logarithms in its tables"
    by_name = True

    @staticmethod
    def parse_log_entries(tokens: Tokens, indices: slice, counts: npt.ArrayLike) -> FloatArray:
        """The tokens, without those at absolute positions `counts`.

        Raises:
            ModelError: one is NaN or +inf.
        """
        is_weight = np.ones(indices.stop - indices.start, dtype=bool)
        is_weight[np.asarray(counts, dtype=np.int64) - indices.start] = False
        logs = tokens.values[indices][is_weight]
        if not (good := logs < np.inf).all():
            bad = int(np.flatnonzero(is_weight)[np.argmin(good)])
            raise tokens.error(indices.start + bad, "the logarithm of a weight must be a finite number or -inf")
        return logs

    def write(self, model: PairwiseModel | FactorGraph) -> bytes:
        return format_log_uai(model).encode()


def _parse_model(tokens: Tokens, name: str, read_entries: Entries) -> FactorGraph:
    n = tokens.count(0, "variables", low=1)
    cards = tokens.integers(1, 1 + n, "a number of states", 1, 2**31).tolist()
    if (total := sum(cards)) > (max_states := max(MAX_UNMENTIONED_STATES, 2 * tokens.size)):
        raise tokens.error(
            1 + cards.index(max(cards)),
            f"the variables have {total} states together; a file of {tokens.size} numbers tells of {max_states} at "
            "most",
        )
    scopes = find_scopes(tokens, 1 + n, n)
    places = find_tables(tokens, scopes, cards)
    first, end = int(places[0]), int(places[-1])
    tokens.check_end(end)
    logs = read_entries(tokens, slice(first, end), places[:-1])
    offsets = places - np.arange(first, first + len(places))
    scopes, logs, offsets = take_diagonals(scopes, cards, logs, offsets)
    if len(scopes.orders) and (dead := np.maximum.reduceat(logs, offsets[:-1]) == -np.inf).any():
        k = int(np.argmax(dead))
        raise tokens.error(int(places[k]) + 1, f"the table of factor {k} is zero everywhere, so Z = 0")
    factors = FactorArrays(np.array(cards, dtype=np.int64), scopes.members, scopes.orders, logs, offsets)
    return FactorGraph(tuple(cards), factors, name=name)


def format_uai(model: PairwiseModel | FactorGraph) -> str:
    """The text of a `.uai` file with preamble MARKOV; names, labels and origin are not part of the format.

    The constant is multiplied into the first table. Where that makes a weight too large or too small for float64 to
    hold it in full, tables are scaled, against each other, so that none is.

    Raises:
        ModelError: there is no such scaling, so that the file would be another model.
    """
    graph = to_factor_graph(model)
    factors = graph.factors or (Factor((0,), np.zeros(graph.cardinalities[0])),)
    tables = [factor.log_table for factor in factors]
    with np.errstate(over="ignore", under="ignore"):
        weights = [np.exp(tables[0] + graph.log_constant), *map(np.exp, tables[1:])]
    if not _are_representable(tables, weights):
        shifts = _balance_log_scales(tables, graph.log_constant)
        if shifts is None:
            raise ModelError(
                f"{graph.name}: the weights span more than float64 holds, so that a UAI file cannot keep them; "
                "an .npz file can, for it holds their logarithms"
            )
        weights = [np.exp(table + shift) for table, shift in zip(tables, shifts, strict=True)]
    return _format_file(graph, factors, weights)


def format_log_uai(model: PairwiseModel | FactorGraph) -> str:
    """The same with logarithms in place of weights, of which a file can hold all."""
    graph = to_factor_graph(model)
    factors = graph.factors or (Factor((0,), np.zeros(graph.cardinalities[0])),)
    tables = [factor.log_table for factor in factors]
    return _format_file(graph, factors, [tables[0] + graph.log_constant, *tables[1:]])


def _format_file(graph: FactorGraph, factors: Sequence[Factor], tables: list[FloatArray]) -> str:
    lines = ["MARKOV", str(graph.num_variables), " ".join(map(str, graph.cardinalities)), str(len(factors))]
    lines += [" ".join(map(str, (len(factor.scope), *factor.scope))) for factor in factors]
    for table in tables:
        lines += ["", str(table.size), " ".join(map(repr, table.ravel().tolist()))]
    return "\n".join(lines) + "\n"


def _are_representable(tables: list[FloatArray], weights: list[FloatArray]) -> bool:
    """Whether weights are finite and of full precision, and zero where their logarithms are -inf only."""
    return all(
        bool(np.isfinite(w).all() and ((w >= SMALLEST_NORMAL) == (t > -np.inf)).all())
        for t, w in zip(tables, weights, strict=True)
    )


def _balance_log_scales(tables: list[FloatArray], constant: float) -> list[float] | None:
    """What to add to each table so that all weights fit and the sum is the constant; None where nothing does."""
    min_shifts = [LOG_TINY - float(table.min(initial=np.inf, where=np.isfinite(table))) for table in tables]
    max_shifts = [LOG_HUGE - float(table.max()) for table in tables]
    bounded = [(min(a, b), b) for a, b in zip(min_shifts, max_shifts, strict=True)]  # a = -inf: a table of zeros
    if any(a > b for a, b in zip(min_shifts, max_shifts, strict=True)) or not sum(
        a for a, _ in bounded
    ) <= constant <= sum(max_shifts):
        return None
    # The shift nearest to 0, so that tables within range stay unchanged; later tables compensate for its effect on the
    # constant.
    shifts = [float(np.clip(0.0, a, b)) for a, b in bounded]
    for k, (a, b) in enumerate(bounded):
        rest = constant - sum(shifts)
        shifts[k] = float(np.clip(shifts[k] + rest, a, b))
    return shifts


def format_mar(marginals: Iterable[npt.NDArray[np.float64]]) -> bytes:
    """Of each variable how many states it has and their probabilities, in as many digits as tell them apart.

    Args:
        marginals: (K_v,) of each variable.
    """
    variables = [" ".join([str(len(p)), *(repr(float(q)) for q in p)]) for p in marginals]
    return f"MAR\n{' '.join([str(len(variables)), *variables])}\n".encode()


def format_pr(log_z: float) -> bytes:
    """Of log Z in nats."""
    # The competitions use log10.
    return f"PR\n{log_z / math.log(10)!r}\n".encode()


def format_mpe(state: npt.NDArray[np.int64]) -> bytes:
    """Of how many variables, and their states (N,)."""
    return f"MPE\n{' '.join(map(str, [len(state), *state.tolist()]))}\n".encode()

"""Quadratic energies and graphs: dimod's BinaryQuadraticModel, its files, qbsolv's, bqpjson, and NetworkX graphs."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.checks import check_number, to_float_array
from spinbench.models.files.format import MAX_UNMENTIONED_STATES, Format, ModelFile
from spinbench.models.files.npz import parse_labels
from spinbench.models.files.text import Tokens
from spinbench.models.pairwise import PairwiseModel

if TYPE_CHECKING:
    import networkx as nx

_COMMENT = re.compile(rb"(?m)^[ \t]*c(?!\S)[^\n]*")
_PROBLEM = re.compile(rb"\s*p\s+qubo\s+(?:0|target)\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})[ \t\r]*(?:\n|\Z)")
_VARTYPE = re.compile(rb"\s*#[ \t]*vartype[ \t]*=[ \t]*(SPIN|BINARY)[ \t\r]*(?:\n|\Z)")


def from_bqm(bqm: Any, *, beta: float = 1.0, name: str = "bqm") -> PairwiseModel:
    """exp(-beta E) of a `dimod.BinaryQuadraticModel`'s energy E, offset included; its variables become labels.

    A SPIN variable of ±1 becomes s = (σ + 1)/2.

    Raises:
        ModelError: no variables, or numbers that are not finite.
    """
    linear, (rows, columns, quadratic), offset, labels = bqm.to_numpy_vectors(return_labels=True)
    return model_from_energy(
        bqm.vartype.name, linear, np.stack([rows, columns], axis=1), quadratic, float(offset), labels, beta, name
    )


class BQM(Format):
    """`from_bqm` of the JSON that `json.dump(bqm.to_serializable(), file)` writes, or bqpjson; dimod is not needed."""

    suffixes = (".json",)
    summary = "dimod's BinaryQuadraticModel (`bqm.to_serializable()`), and bqpjson"
    energies = True

    def recognises(self, head: bytes) -> bool:
        is_json = head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
        return is_json and (b'"BinaryQuadraticModel"' in head or b'"variable_domain"' in head)

    def read(self, file: ModelFile) -> PairwiseModel:
        fields = _read_json(file)
        if "variable_domain" in fields:
            return _read_bqpjson(file, fields)
        _check_fields(file, fields)
        try:
            ends = np.array([fields["quadratic_head"], fields["quadratic_tail"]]).T
            labels = parse_labels(fields["variable_labels"])
        except (TypeError, ValueError):
            raise ModelError(
                f"{file.name}: quadratic_head, quadratic_tail or variable_labels is not a list as dimod writes it"
            ) from None
        linear, quadratic = fields["linear_biases"], fields["quadratic_biases"]
        vartype, offset = fields["variable_type"], fields["offset"]
        return model_from_energy(vartype, linear, ends, quadratic, offset, labels, file.beta, file.stem)


def _read_json(file: ModelFile) -> dict[str, Any]:
    """The object that a file holds; empty where it is none."""
    text = file.text()
    try:
        fields = json.loads(text)
    except json.JSONDecodeError as error:
        raise ModelError(f"{file.name}, line {error.lineno}: this is not JSON ({error.msg})") from None
    except (RecursionError, ValueError) as error:
        raise ModelError(f"{file.name}: this JSON cannot be read ({error})") from None
    return fields if isinstance(fields, dict) else {}


def _read_bqpjson(file: ModelFile, fields: dict[str, Any]) -> PairwiseModel:
    """exp(-beta scale (offset + Σ linear + Σ quadratic)); variables are labelled by their numbers."""
    try:
        index = {label: v for v, label in enumerate(fields["variable_ids"])}
        linear, quadratic = fields["linear_terms"], fields["quadratic_terms"]
        places = np.array([index[term["id"]] for term in linear], dtype=np.int64)
        ends = [(index[term["id_tail"]], index[term["id_head"]]) for term in quadratic]
        numbers, couplings = ([term["coeff"] for term in terms] for terms in (linear, quadratic))
        scale, offset = fields["scale"], fields["offset"]
    except (KeyError, TypeError) as error:
        raise ModelError(f"{file.name}: this is no bqpjson, for {error!s:.80} is lacking or none of its kind") from None
    biases = np.bincount(places, to_float_array(file.name, "linear terms", numbers), minlength=len(index))
    vartype = {"spin": "SPIN", "boolean": "BINARY"}.get(str(fields["variable_domain"]), str(fields["variable_domain"]))
    beta = file.beta * check_number(file.name, "the scale", scale)
    return model_from_energy(vartype, biases, ends, couplings, offset, list(index), beta, file.stem)


def _check_fields(file: ModelFile, fields: dict[str, Any]) -> None:
    """Refuses what is not the JSON of a BinaryQuadraticModel, of the schema that is understood."""
    kind = fields.get("type")
    if kind != "BinaryQuadraticModel":
        raise ModelError(f"{file.name}: the JSON has type {kind!r}; dimod's 'BinaryQuadraticModel' is needed")
    version = fields.get("version")
    schema = version.get("bqm_schema") if isinstance(version, dict) else None
    encoding = " as bytes" if fields.get("use_bytes") else ""
    if not str(schema).startswith("3.") or encoding:
        raise ModelError(
            f"{file.name}: the BinaryQuadraticModel has schema {schema}{encoding}; schema 3 "
            "as numbers is needed, as dimod's to_serializable() writes it"
        )
    needed = ("linear_biases", "quadratic_biases", "quadratic_head", "quadratic_tail", "offset", "variable_type")
    if missing := [key for key in (*needed, "variable_labels") if key not in fields]:
        raise ModelError(f"{file.name}: the BinaryQuadraticModel has no field {missing[0]!r}")


def from_networkx(graph: nx.Graph[Hashable], *, name: str | None = None) -> PairwiseModel:
    """Node attribute `bias` (0 where absent), edge attribute `coupling`, or else `weight`; nodes become labels.

    Variables are in {0, 1}. Parallel edges are summed.

    Raises:
        ModelError: a directed graph, no nodes, a self-loop, or an edge without a number.
    """
    name = name or str(graph.graph.get("name") or "graph")
    if graph.is_directed():
        raise ModelError(f"{name}: the graph is directed; an undirected one is needed")
    labels = list(graph.nodes)
    index = {label: v for v, label in enumerate(labels)}
    biases = [data.get("bias", 0.0) for _, data in graph.nodes(data=True)]
    edges, couplings = [], []
    for u, v, data in graph.edges(data=True):
        coupling = data.get("coupling", data.get("weight"))
        if coupling is None:
            raise ModelError(f"{name}: edge ({u!r}, {v!r}) has neither 'coupling' nor 'weight'")
        edges.append((index[u], index[v]))
        couplings.append(coupling)
    return PairwiseModel.from_edges(biases, edges, couplings, name=name, labels=labels)


def model_from_energy(
    vartype: object,
    linear: npt.ArrayLike,
    edges: npt.ArrayLike,
    quadratic: npt.ArrayLike,
    offset: float,
    labels: Sequence[Hashable],
    beta: float,
    name: str,
) -> PairwiseModel:
    """exp(-beta E) of E = offset + Σ linear + Σ quadratic, of variables of a type of dimod's, SPIN or BINARY.

    Raises:
        ModelError: another type, or numbers that are not finite.
    """
    if vartype not in ("SPIN", "BINARY"):
        raise ModelError(f"{name}: the variables are of type {vartype!r}; 'SPIN' or 'BINARY' is needed")
    make = PairwiseModel.from_spins if vartype == "SPIN" else PairwiseModel.from_edges
    scale = -check_number(name, "beta", beta)
    return make(
        scale * to_float_array(name, "linear biases", linear),
        edges,
        scale * to_float_array(name, "quadratic biases", quadratic),
        log_constant=scale * check_number(name, "the offset", offset),
        name=name,
        labels=labels,
    )


class QUBO(Format):
    """E = Σ_i Q_ii x_i + Σ_i<j Q_ij x_i x_j of x_i in {0, 1}, i from 0."""

    suffixes = (".qubo",)
    summary = "qbsolv's energies of binary variables"
    limit = 64 * 2**20
    energies = True

    def recognises(self, head: bytes) -> bool:
        return _PROBLEM.match(_COMMENT.sub(b"", head.removeprefix(b"\xef\xbb\xbf"))) is not None

    def read(self, file: ModelFile) -> PairwiseModel:
        text = _COMMENT.sub(b"", file.text())
        if (problem := _PROBLEM.match(text)) is None:
            raise ModelError(f"{file.name}: a line 'p qubo 0 VARIABLES DIAGONAL COUPLERS' is needed before the numbers")
        n, *counts = map(int, problem.groups())
        tokens = Tokens(text, file.name, start=problem.end())
        if not 0 < n <= max(MAX_UNMENTIONED_STATES, tokens.size):
            raise ModelError(f"{file.name}: {n} variables are claimed; 1 and more are needed that the file tells of")
        ends = _read_ends(tokens, n - 1)
        diagonal = int((ends[:, 0] == ends[:, 1]).sum())
        if [diagonal, len(ends) - diagonal] != counts:
            raise ModelError(
                f"{file.name}: {counts[0]} and {counts[1]} numbers on and off the diagonal are claimed, but there are "
                f"{diagonal} and {len(ends) - diagonal}"
            )
        return _build_model(file, tokens, "BINARY", ends, range(n))


class COO(Format):
    """dimod's `coo.dumps`: energies of spins or binary variables, which the first line tells."""

    suffixes = (".coo",)
    summary = "dimod's lists of energies"
    limit = 64 * 2**20
    energies = True

    def recognises(self, head: bytes) -> bool:
        return _VARTYPE.match(head.removeprefix(b"\xef\xbb\xbf")) is not None

    def read(self, file: ModelFile) -> PairwiseModel:
        text = file.text()
        if (vartype := _VARTYPE.match(text)) is None:
            raise ModelError(f"{file.name}: the first line must be '# vartype=SPIN' or '# vartype=BINARY'")
        tokens = Tokens(text, file.name, start=vartype.end())
        labels, ends = np.unique(_read_ends(tokens, 2**31), return_inverse=True)
        return _build_model(file, tokens, vartype[1].decode(), ends.reshape(-1, 2), labels.tolist())


def _read_ends(tokens: Tokens, largest: int) -> np.ndarray:
    """(T, 2) variables of the triples."""
    if tokens.size % 3:
        raise tokens.error(tokens.size, "a triple of two variables and a number is not whole")
    places = np.flatnonzero(np.arange(tokens.size) % 3 < 2)
    return tokens.integers_at(places, "a variable", 0, largest).reshape(-1, 2)


def _build_model(file: ModelFile, tokens: Tokens, vartype: str, ends: np.ndarray, labels: object) -> PairwiseModel:
    """Of triples; those of one variable twice are linear."""
    values, linear = tokens.values[2::3], ends[:, 0] == ends[:, 1]
    names = list(labels)  # type: ignore[call-overload]
    fields = np.bincount(ends[linear, 0], values[linear], minlength=len(names))
    return model_from_energy(vartype, fields, ends[~linear], values[~linear], 0.0, names, file.beta, file.stem)

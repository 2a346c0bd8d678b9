"""Models of other libraries: dimod's BinaryQuadraticModel, its JSON form, and NetworkX graphs."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.checks import check_number, to_float_array
from spinbench.models.files.format import Format, ModelFile
from spinbench.models.files.npz import parse_labels
from spinbench.models.pairwise import PairwiseModel

if TYPE_CHECKING:
    import networkx as nx


def from_bqm(bqm: Any, *, beta: float = 1.0, name: str = "bqm") -> PairwiseModel:
    """exp(-beta E) of a `dimod.BinaryQuadraticModel`'s energy E, offset included; its variables become labels.

    A SPIN variable of ±1 becomes s = (σ + 1)/2.

    Raises:
        ModelError: no variables, or numbers that are not finite.
    """
    linear, (rows, columns, quadratic), offset, labels = bqm.to_numpy_vectors(return_labels=True)
    return _model_from_energy(
        bqm.vartype.name, linear, np.stack([rows, columns], axis=1), quadratic, float(offset), labels, beta, name
    )


class BQM(Format):
    """`from_bqm` of the JSON that `json.dump(bqm.to_serializable(), file)` writes; dimod is not needed."""

    suffixes = (".json",)
    summary = "dimod's BinaryQuadraticModel (`bqm.to_serializable()`)"
    energies = True

    def recognises(self, head: bytes) -> bool:
        return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{") and b'"BinaryQuadraticModel"' in head

    def read(self, file: ModelFile) -> PairwiseModel:
        fields = _read_json_fields(file)
        try:
            ends = np.array([fields["quadratic_head"], fields["quadratic_tail"]]).T
            labels = parse_labels(fields["variable_labels"])
        except (TypeError, ValueError):
            raise ModelError(
                f"{file.name}: quadratic_head, quadratic_tail or variable_labels is not a list as dimod writes it"
            ) from None
        linear, quadratic = fields["linear_biases"], fields["quadratic_biases"]
        vartype, offset = fields["variable_type"], fields["offset"]
        return _model_from_energy(vartype, linear, ends, quadratic, offset, labels, file.beta, file.stem)


def _read_json_fields(file: ModelFile) -> dict[str, Any]:
    """All that the JSON of a BinaryQuadraticModel holds, of the schema that is understood."""
    text = file.text()
    try:
        fields: dict[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        raise ModelError(f"{file.name}, line {error.lineno}: this is not JSON ({error.msg})") from None
    except (RecursionError, ValueError) as error:
        raise ModelError(f"{file.name}: this JSON cannot be read ({error})") from None
    kind = fields.get("type") if isinstance(fields, dict) else None
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
    return fields


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


def _model_from_energy(
    vartype: object,
    linear: npt.ArrayLike,
    edges: npt.ArrayLike,
    quadratic: npt.ArrayLike,
    offset: float,
    labels: Sequence[Hashable],
    beta: float,
    name: str,
) -> PairwiseModel:
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

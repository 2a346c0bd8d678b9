"""`load` and `save`: one door for every source of models."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spinbench.errors import ModelError
from spinbench.foundation import atomic
from spinbench.foundation.overrides import is_assignment
from spinbench.models import catalogue, formats, names
from spinbench.models import evidence as evidences
from spinbench.models.checks import check_number
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.files import bqm, evid, objects
from spinbench.models.files.cost_functions import quadratic
from spinbench.models.files.format import Format, ModelFile
from spinbench.models.files.packed import PACKERS
from spinbench.models.files.text import read_bytes, read_text
from spinbench.models.pairwise import PairwiseModel

Model = PairwiseModel | FactorGraph
Evidence = str | os.PathLike[str] | evidences.Evidence


def load(source: Any, *, evidence: Evidence | None = None, name: str | None = None, beta: float | None = None) -> Model:
    """A model from a file, a shipped model's name or an object of another library.

    Args:
        source: a path (of a format that `spinbench list` shows, by suffix and content, gzipped or not), the name of a
            shipped model, a PairwiseModel or FactorGraph, a dimod BinaryQuadraticModel or DiscreteQuadraticModel, a
            discrete network or factor graph of pgmpy or pyAgrum, a NetworkX graph, a fitted BernoulliRBM of
            scikit-learn, or arrays (biases, W) or (biases, edges, couplings).
        evidence: path of a `.evid` file, "VARIABLE=STATE" by names or numbers, one a line, or {variable: state};
            observed variables are removed (see `condition`). Soft evidence is {variable: likelihoods of its states}, a
            factor more.
        name: for messages and tables; by default the file's name without suffix.
        beta: inverse temperature of energies, 1 by default; of dimod's quadratic models and formats of energies alone.

    Raises:
        ModelError: one sentence that names file, line and token, or array and index.
        BrokenPluginError: a format's reader returned no model.
        UnknownNameError: neither a file nor a shipped model.
    """
    model = _read_source(source, name, beta)
    if evidence is None:
        return model
    return evidences.condition(model, evidence if isinstance(evidence, Mapping) else _read_evidence(model, evidence))


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a file of the format that its suffix names, packed if `.gz`, `.bz2` or `.xz` follows; it appears whole or
    not at all.

    Raises:
        ModelError: another suffix, a model that the format cannot hold, or a file that cannot be written.
        BrokenPluginError: a format's writer gave no bytes.
    """
    target = Path(path)
    data = formats.serialise_model(formats.format_for_writing(target), model)
    if (pack := PACKERS.get(target.suffix.lower())) is not None:
        data = pack(data)
    try:
        atomic.write_bytes(target, data)
    except OSError as error:
        raise ModelError(f"{target}: the file cannot be written ({error.strerror or error})") from None


def check_model_exists(path: str) -> None:
    """Raises ModelError where `load` would find neither a file nor a shipped model."""
    shipped = path in catalogue.names() and not formats.formats_by_name(Path(path).name)
    try:
        exists = shipped or Path(path).exists()
    except OSError as error:
        # For example, the name is too long.
        raise ModelError(f"{path[:100]}…: there cannot be such a file ({error.strerror})") from None
    if not exists:
        raise ModelError(f"{path}: there is no such file")


def _read_source(source: Any, name: str | None, beta: float | None) -> Model:
    if isinstance(source, str | os.PathLike):
        return _read_path(source, name, beta)
    if hasattr(source, "to_numpy_vectors") and hasattr(source, "vartype"):
        return bqm.from_bqm(source, beta=1.0 if beta is None else beta, name=name or "bqm")
    if hasattr(source, "to_numpy_vectors") and hasattr(source, "num_cases"):
        return quadratic.from_dqm(source, beta=1.0 if beta is None else beta, name=name or "dqm")
    if beta is not None:
        raise ModelError(f"beta = {beta} was given, but only a quadratic model of dimod's has energies to scale")
    if isinstance(source, PairwiseModel | FactorGraph):
        return source if name is None else replace(source, name=name)
    if objects.is_object_of("pgmpy", source):
        return objects.from_pgmpy(source, name=name)
    if objects.is_object_of("pyagrum", source):
        return objects.from_pyagrum(source, name=name)
    if hasattr(source, "is_directed") and hasattr(source, "nodes"):
        return bqm.from_networkx(source, name=name)
    if hasattr(source, "components_") and hasattr(source, "intercept_visible_"):
        return objects.from_sklearn(source, name=name or "rbm")
    if isinstance(source, tuple | list) and len(source) in (2, 3):
        make: Any = PairwiseModel.from_edges
        if len(source) == 2:
            make = PairwiseModel.from_dense
        if len(source) == 2 and hasattr(source[1], "tocoo"):
            return _model_from_sparse(source[0], source[1], name or "model")
        model: PairwiseModel = make(*source, name=name or "model")
        return model
    raise ModelError(
        f"a model cannot be made of a {type(source).__name__}; a path, a shipped model's name, a PairwiseModel, a "
        "FactorGraph, a BinaryQuadraticModel, a DiscreteQuadraticModel, a network of pgmpy or pyAgrum, a NetworkX "
        "graph, a fitted BernoulliRBM, (biases, W) or (biases, edges, couplings) can"
    )


def _read_evidence(model: Model, source: str | os.PathLike[str]) -> evidences.Evidence:
    """What a text or file says; numbers alone are those of the UAI competitions."""
    if is_assignment(source):
        return names.parse_evidence(model, str(source), "evidence")
    path = Path(source)
    text = read_text(path)
    if evid.has_words(text):
        return names.parse_evidence(model, text.decode(), path.name)
    return evid.parse_evidence(text, path.name)


def _read_path(source: str | os.PathLike[str], name: str | None, beta: float | None) -> Model:
    path = Path(source)
    named_formats = formats.formats_by_name(path.name)
    if not named_formats and isinstance(source, str) and not path.exists():
        model = catalogue.load(source)
        _check_beta(path, [], beta)
        return model if name is None else replace(model, name=name)
    if named_formats:
        _check_beta(path, named_formats, beta)
    file_format = formats.detect_format(path)
    _check_beta(path, [file_format], beta)
    data = read_bytes(path, file_format.limit)
    file = ModelFile(path.name, data, 1.0 if beta is None else beta)
    model = formats.read_model(file_format, file)
    return replace(model, name=name or file.stem)


def _check_beta(path: Path, formats: list[Format], beta: float | None) -> None:
    if beta is not None and not any(each.energies for each in formats):
        raise ModelError(f"{path.name}: beta = {beta} was given, but the file holds no energies to scale")
    if beta is not None:
        check_number(path.name, "beta", beta)


def _model_from_sparse(biases: Any, weights: Any, name: str) -> PairwiseModel:
    """From a SciPy sparse W; symmetric to a relative 1e-12, with a zero diagonal."""
    W = weights.tocoo()
    N = len(biases)
    if W.shape != (N, N):
        raise ModelError(f"{name}: couplings have shape {W.shape}; {(N, N)} is needed")
    gap = (weights - weights.T).tocoo()
    bad = abs(gap.data) > 1e-12 * (1 + abs(W.data).max(initial=0.0))
    if bad.any():
        i, j = int(gap.row[bad][0]), int(gap.col[bad][0])
        raise ModelError(f"{name}: W[{i}, {j}] and W[{j}, {i}] differ by {gap.data[bad][0]:g}; W must be symmetric")
    keep = (W.row <= W.col) & (W.data != 0)
    edges = np.stack([W.row[keep], W.col[keep]], axis=1)
    return PairwiseModel.from_edges(biases, edges, W.data[keep], name=name)

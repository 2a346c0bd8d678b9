"""The models shipped with spinbench, by name, with answers that were published or computed elsewhere.

Sources and licences stand beside the files, in `spinbench/data`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from spinbench.errors import UnknownNameError, UnsupportedError
from spinbench.foundation.remarks import unknown_name
from spinbench.models import lattices
from spinbench.models.conditionals import PerVariable
from spinbench.models.evidence import condition
from spinbench.models.factor_graph import FactorGraph, FloatArray
from spinbench.models.files.evid import read_evidence
from spinbench.models.files.format import Format, ModelFile
from spinbench.models.files.libdai import LibDAI
from spinbench.models.files.text import Tokens, read_bytes, read_text
from spinbench.models.files.uai import UAI
from spinbench.models.pairwise import PairwiseModel

Model = PairwiseModel | FactorGraph


@dataclass(frozen=True, eq=False)
class Reference:
    """A trusted answer.

    Attributes:
        log_z: natural logarithm of Z, evidence included.
        marginals: (N,) p(s = 1) where all variables are binary, else a list of (K,) arrays; observed variables
            included; None where none were published.
        decimals: digits after the point to which marginals are known.
    """

    log_z: float
    marginals: PerVariable | None
    decimals: int


@dataclass(frozen=True)
class _Entry:
    summary: str
    load: Callable[[], Model]
    reference: Callable[[], Reference] | None


def names() -> list[str]:
    """The shipped models, sorted."""
    return sorted(_ENTRIES)


def summary(name: str) -> str:
    """A line that says what the model is."""
    return _find_entry(name).summary


def load(name: str) -> Model:
    """The shipped model; where it comes with evidence, conditioned on it.

    Raises:
        UnknownNameError: offers the closest names.
    """
    return replace(_find_entry(name).load(), name=name)


def reference(name: str) -> Reference:
    """The trusted answer, for the original variables (`model.original_marginals` leads to them).

    Raises:
        UnknownNameError: offers the closest names.
        UnsupportedError: nobody knows it.
    """
    if (load_reference := _find_entry(name).reference) is None:
        raise UnsupportedError(f"{name} has no trusted answer: it is out of reach of exact solvers")
    return load_reference()


def _find_entry(name: str) -> _Entry:
    if name not in _ENTRIES and Path(name).suffix:
        raise UnknownNameError(f"no file is named {name!r}; spinbench list shows the models that are shipped")
    if name not in _ENTRIES:
        raise unknown_name("file or shipped model", name, names())
    return _ENTRIES[name]


def _data_path(relative: str) -> Path:
    # A path is enough: installers unpack wheels, so that the package's data are files.
    return Path(__file__).parent.parent / "data" / relative


def _read_numbers(relative: str) -> FloatArray:
    path = _data_path(relative)
    return Tokens(read_text(path), path.name).values


def _read_model(file_format: Format, relative: str) -> Model:
    path = _data_path(relative)
    return file_format.read(ModelFile(path.name, read_bytes(path, file_format.limit)))


def _load_uai(name: str) -> Model:
    model = _read_model(UAI(), f"{name}.uai")
    return condition(model, read_evidence(_data_path(f"{name}.uai.evid")))


def _read_uai_reference(name: str) -> Reference:
    answer = json.loads(_data_path(f"{name}.exact.json").read_text())
    tables = [np.array(table, dtype=np.float64) for table in answer["marginals"]]
    if all(table.size == 2 for table in tables):
        return Reference(answer["lnZ"], np.array([table[1] for table in tables]), 12)
    return Reference(answer["lnZ"], tables, 12)


def _load_neural() -> Model:
    W = _read_numbers("boltzmann/neural15_W_upper.txt").reshape(15, 15)
    return PairwiseModel.from_dense(_read_numbers("boltzmann/neural15_b.txt"), W + W.T)


def _load_digits_rbm() -> Model:
    a, b = _read_numbers("boltzmann/digits_rbm16_a.txt"), _read_numbers("boltzmann/digits_rbm16_b.txt")
    edges = lattices.bipartite_edges(a.size, b.size)
    return PairwiseModel.from_edges(np.concatenate([a, b]), edges, _read_numbers("boltzmann/digits_rbm16_W.txt"))


def _load_digits_lattice() -> Model:
    rows = _read_numbers("boltzmann/digits_lattice_edges.txt").reshape(-1, 3)
    return PairwiseModel.from_edges(
        _read_numbers("boltzmann/digits_lattice_b.txt"), rows[:, :2].astype(np.int64), rows[:, 2]
    )


def _load_horse_denoising() -> Model:
    noisy = _read_numbers("boltzmann/horse16x20_noisy.txt")
    edges = lattices.grid_edges(16, 20)
    # log odds of a pixel flipped with probability 0.15
    field = 0.5 * math.log(0.85 / 0.15) * (2 * noisy - 1)
    return PairwiseModel.from_spins(field, edges, np.full(len(edges), 0.6))


def _read_boltzmann_reference(log_z: float, *stems: str) -> Reference:
    return Reference(log_z, np.concatenate([_read_numbers(f"boltzmann/{stem}.txt") for stem in stems]), 12)


# The only model of the catalogue without a known answer.
UNANSWERED = "uai14hard/linkage_11"
_UAI = {
    "uai14/CSP_12": "constraint satisfaction, 67 variables of 2 and 4 states, factors of order 3",
    "uai14/DBN_11": "complete bipartite 20 x 20, 40 binary variables",
    "uai14/DBN_14": "complete bipartite 20 x 20, 40 binary variables",
    "uai14/Grids_12": "10 x 10 grid of binary variables",
    "uai14/ObjectDetection_11": "60 variables of 11 states, pair factors with hard zeros",
    "uai14/Promedus_24": "medical diagnosis, 200 binary variables, factors of order 3 with hard zeros, evidence",
    "uai14/Segmentation_12": "image segmentation, 229 binary variables",
    "uai14/Segmentation_14": "image segmentation, 226 binary variables",
    "uai14hard/Alchemy_11": "relational model, 440 binary variables, factors of order 3",
    "uai14hard/CSP_11": "constraint satisfaction, 82 variables of 2 and 4 states, pair factors",
    "uai14hard/Grids_15": "20 x 20 grid of binary variables",
    "uai14hard/Pedigree_11": "genetic pedigree, 385 variables of 2 and 3 states, zeros, evidence",
    "uai14hard/Promedus_38": "medical diagnosis, 668 binary variables, zeros, evidence",
    "uai14hard/linkage_16": "genetic linkage, 402 variables of up to 5 states, zeros",
    "uai14hard/linkage_21": "genetic linkage, 437 variables of up to 5 states, zeros",
}
_LIBDAI = {
    "alarm": ("ALARM network, 37 variables of 2 to 4 states", -0.000199919983),
    "hoi1": ("three random factors of order 3", 5.530780894349),
    "hoi2": ("two random factors of order 4", 5.251400909664),
    "hoi3": ("three random factors of order 3", 6.613744453097),
    "testfast": ("4 x 4 grid of binary variables", 14.328233281092),
}
_ENTRIES = {
    "boltzmann/neural15": _Entry(
        "15 recorded neurons, all pairs coupled",
        _load_neural,
        partial(_read_boltzmann_reference, 1.5586339046, "neural15_marg"),
    ),
    "boltzmann/digits_rbm16": _Entry(
        "restricted Boltzmann machine of handwritten digits, 64 visible and 16 hidden units",
        _load_digits_rbm,
        partial(_read_boltzmann_reference, 63.2845352035, "digits_rbm16_marg_v", "digits_rbm16_marg_h"),
    ),
    "boltzmann/digits_lattice": _Entry(
        "handwritten digits on an 8 x 8 lattice with diagonals",
        _load_digits_lattice,
        partial(_read_boltzmann_reference, 16.8150762706, "digits_lattice_marg"),
    ),
    "boltzmann/horse16x20": _Entry(
        "denoising of a 16 x 20 picture",
        _load_horse_denoising,
        partial(_read_boltzmann_reference, 505.0881355634, "horse16x20_marg"),
    ),
    **{name: _Entry(text, partial(_load_uai, name), partial(_read_uai_reference, name)) for name, text in _UAI.items()},
    UNANSWERED: _Entry(
        "genetic linkage, 1077 variables of up to 3 states, zeros; no answer is known",
        partial(_load_uai, UNANSWERED),
        None,
    ),
    **{
        f"libdai/{stem}": _Entry(
            text, partial(_read_model, LibDAI(), f"libdai/{stem}.fg"), partial(Reference, log_z, None, 12)
        )
        for stem, (text, log_z) in _LIBDAI.items()
    },
}

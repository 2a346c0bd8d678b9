"""dimod's own files and objects have the energies that dimod says."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path
from typing import Any

import dimod
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_model_files import CASES, QUADRATIC, archive, dimod_file, section

from spinbench.errors import ModelError
from spinbench.models import formats, load
from spinbench.models.files.format import ModelFile

LABELS = ["numbers", "texts", "tuples"]


def label(kind: str, v: int) -> Any:
    return {"numbers": v, "texts": f"v{v}", "tuples": ("v", v)}[kind]


def check_energies(model: Any, given: Any, labels: list[Any], cards: list[int], beta: float) -> None:
    states = np.array(list(itertools.product(*map(range, cards))))
    values = 2 * states - 1 if getattr(given, "vartype", None) is dimod.SPIN else states
    energies = given.energies((values, labels))
    np.testing.assert_allclose(model.log_weight(states), -beta * energies, rtol=1e-12, atol=1e-12)
    assert list(model.labels or range(len(labels))) == labels


@given(
    st.integers(0, 2**32),
    st.integers(1, 6),
    st.sampled_from(LABELS),
    st.sampled_from(["SPIN", "BINARY"]),
    st.booleans(),
)
def test_binary_quadratic_models(seed: int, n: int, kind: str, vartype: str, single: bool) -> None:
    rng = np.random.default_rng(seed)
    bqm = dimod.BinaryQuadraticModel(vartype, dtype=np.float32 if single else np.float64)
    labels = [label(kind, v) for v in range(n)]
    for name in labels:
        bqm.add_variable(name, rng.normal())
    for u, v in itertools.combinations(labels, 2):
        if rng.random() < 0.6:
            bqm.add_quadratic(v, u, rng.normal())
    bqm.offset = rng.normal()
    for version in (1, 2):
        file = ModelFile("m.bqm", bqm.to_file(version=version).read(), 0.7)
        check_energies(formats.load("bqm_file").read(file), bqm, labels, [2] * n, 0.7)


@given(
    st.integers(0, 2**32), st.lists(st.integers(1, 4), min_size=1, max_size=4), st.sampled_from(LABELS), st.booleans()
)
def test_discrete_quadratic_models(seed: int, cards: list[int], kind: str, compress: bool) -> None:
    rng, dqm = np.random.default_rng(seed), dimod.DiscreteQuadraticModel()
    labels = [dqm.add_variable(k, label=label(kind, v)) for v, k in enumerate(cards)]
    for name, k in zip(labels, cards, strict=True):
        dqm.set_linear(name, rng.normal(size=k))
    for u, v in itertools.combinations(range(len(cards)), 2):
        for a, b in itertools.product(range(cards[u]), range(cards[v])):
            if rng.random() < 0.5:
                dqm.set_quadratic_case(labels[u], a, labels[v], b, rng.normal())
    dqm.offset = rng.normal()
    check_energies(load(dqm, beta=1.3), dqm, labels, cards, 1.3)
    file = ModelFile("m.dqm", dqm.to_file(compress=compress).read(), 1.3)
    check_energies(formats.load("dqm_file").read(file), dqm, labels, cards, 1.3)


def discrete(header: Any = None, **changes: Any) -> bytes:
    return dimod_file(b"DIMODDQM", 1, header or {"variables": False}, section(b"BIAS", archive(**CASES | changes)))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("m.bqm", dimod_file(b"DIMODBQM", 3, QUADRATIC), "version 3 is none of 1 to 2"),
        ("m.bqm", dimod_file(b"DIMODBQM", 2, QUADRATIC), "it ends too early"),
        ("m.bqm", dimod_file(b"DIMODBQM", 2, QUADRATIC | {"shape": [-1, 0]}) + bytes(8), "it ends too early"),
        ("m.bqm", dimod_file(b"DIMODBQM", 2, QUADRATIC | {"shape": [10**9, 10**12]}) + bytes(64), "it ends too early"),
        (
            "m.bqm",
            dimod_file(b"DIMODBQM", 2, QUADRATIC | {"dtype": "object"}) + bytes(64),
            "to_file() writes it: 'object'",
        ),
        ("m.bqm", dimod_file(b"DIMODBQM", 2, {}) + bytes(64), "to_file() writes it: 'dtype'"),
        ("m.bqm", dimod_file(b"DIMODBQM", 2, [1]) + bytes(64), "its header is no object of JSON"),
        ("m.bqm", b"DIMODBQM\2\0\4\0\0\0{{{{", "a part is no JSON"),
        (
            "m.bqm",
            dimod_file(b"DIMODBQM", 2, QUADRATIC | {"shape": [1, 0], "variables": True}) + bytes(28),
            "no part VARS",
        ),
        *(
            (
                "m.bqm",
                dimod_file(b"DIMODBQM", 2, QUADRATIC) + struct.pack("<didididid", 0.5, 0, 1.0, 1, -2.0, *pairs),
                "its pairs are not the same both ways",
            )
            for pairs in ((1, 0.25, 0, 0.5), (0, 0.25, 1, 0.25), (7, 0.25, 0, 0.25))
        ),
        ("m.dqm", dimod_file(b"DIMODDQM", 1, {}, section(b"BIAS", b"PK")), "is not a whole .npz archive"),
        ("m.dqm", dimod_file(b"DIMODDQM", 1, {}, section(b"BIAS", archive(offset=1))), "there is no array case_starts"),
        ("m.dqm", discrete(case_starts=[1, 2]), "its cases are not numbered"),
        ("m.dqm", discrete(case_starts=[0.0, 2.0]), "its cases are not numbered"),
        ("m.dqm", discrete(quadratic_row_indices=[2, 9, 3]), "its cases are not numbered"),
        ("m.dqm", discrete(quadratic_row_indices=[2, -1, 3]), "its cases are not numbered"),
        ("m.dqm", discrete(quadratic_row_indices=[2, 4]), "its cases are not numbered"),
        ("m.dqm", discrete(quadratic_col_indices=[3, 0, 1]), "two cases of one variable have an energy together"),
        ("m.dqm", discrete(linear_biases=[0.5, 0, np.nan, 0, 0]), "a NaN or infinite entry"),
        ("m.dqm", discrete(offset=[1.0, 2.0]), "the offset is nan"),
        ("m.dqm", discrete({"variables": [{}, 1]}), "its variables are no list of texts and numbers"),
    ],
    ids=range(23),
)
def test_damaged_files(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ModelError) as caught:
        load(path)
    assert message in str(caught.value)

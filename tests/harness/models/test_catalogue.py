"""Shipped models: all parse, have the sizes of their sources, and agree with the answers that come with them."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from random_models import enumerate_all

import spinbench.data
from spinbench.models import FactorGraph, PairwiseModel, catalogue, to_pairwise

DATA = Path(spinbench.data.__file__).parent

# variables, numbers of states that occur, largest factor, zeros, natural log Z; evidence is in the first four
SIZES = {
    "uai14/CSP_12": (67, {2, 4}, 3, 0, 37.8857496369),
    "uai14/DBN_11": (40, {2}, 2, 0, 134.7718323322),
    "uai14/DBN_14": (40, {2}, 2, 0, 348.0481694936),
    "uai14/Grids_12": (100, {2}, 2, 0, 697.8812055304),
    "uai14/ObjectDetection_11": (60, {11}, 2, 3525, -172.4184046419),
    "uai14/Promedus_24": (200, {2}, 3, 297, -13.4973189285),
    "uai14/Segmentation_12": (229, {2}, 2, 0, -23.6872070585),
    "uai14/Segmentation_14": (226, {2}, 2, 0, -90.9440453846),
    "uai14hard/Alchemy_11": (440, {2}, 3, 0, 1396.0094457811),
    "uai14hard/CSP_11": (82, {2, 4}, 2, 0, 31.229954532889),
    "uai14hard/Grids_15": (400, {2}, 2, 0, 671.7392570127),
    "uai14hard/Pedigree_11": (385, {2, 3}, 4, 0, -39.6401400141),
    "uai14hard/Promedus_38": (668, {2}, 3, 0, -11.4722871344),
    "uai14hard/linkage_16": (402, {1, 2, 3, 4, 5}, 4, 2896, -88.7775281082),
    "uai14hard/linkage_21": (437, {1, 2, 3, 4, 5}, 4, 3817, -68.2264721811),
    "libdai/testfast": (16, {2}, 2, 0, 14.328233281092),
    "libdai/hoi1": (6, {2}, 3, 0, 5.530780894349),
    "libdai/hoi2": (6, {2}, 4, 0, 5.251400909664),
    "libdai/hoi3": (8, {2}, 3, 0, 6.613744453097),
    "libdai/alarm": (37, {2, 3, 4}, 5, 5, -0.000199919983),
    "boltzmann/neural15": (15, {2}, 2, 0, 1.5586339046),
    "boltzmann/digits_rbm16": (80, {2}, 2, 0, 63.2845352035),
    "boltzmann/digits_lattice": (64, {2}, 2, 0, 16.8150762706),
    "boltzmann/horse16x20": (320, {2}, 2, 0, 505.0881355634),
}


def test_names():
    assert catalogue.names() == sorted([*SIZES, catalogue.UNANSWERED])


@pytest.mark.parametrize("name", SIZES)
def test_sizes_and_answers(name):
    variables, states, order, zeros, log_z = SIZES[name]
    model, reference = catalogue.load(name), catalogue.reference(name)
    assert model.name == name
    assert catalogue.summary(name)
    original = model.origin.cardinalities if model.origin else model.cardinalities
    assert len(original) == variables
    assert set(original) == states
    assert reference.log_z == pytest.approx(log_z, abs=1e-10)
    if isinstance(model, FactorGraph):
        assert max(len(f.scope) for f in model.factors) == order
        if model.origin is None:
            assert sum(int(np.isneginf(f.log_table).sum()) for f in model.factors) == zeros
    if reference.marginals is None:
        assert name.startswith("libdai/")
    elif states == {2}:
        assert isinstance(reference.marginals, np.ndarray)
        assert reference.marginals.shape == (variables,)
        assert (reference.marginals >= 0).all()
        assert (reference.marginals <= 1).all()
    else:
        assert [m.size for m in reference.marginals] == list(original)
        np.testing.assert_allclose([m.sum() for m in reference.marginals], 1.0, atol=1e-12)


@pytest.mark.parametrize("name", ["libdai/testfast", "libdai/hoi1", "libdai/hoi2", "libdai/hoi3", "boltzmann/neural15"])
def test_small_models_by_enumeration(name):
    model, reference = catalogue.load(name), catalogue.reference(name)
    log_z, marginals = enumerate_all(model)
    # the files of neural15 were rounded after the fit, and its log Z printed with ten decimals
    assert log_z == pytest.approx(reference.log_z, abs=1e-10)
    if reference.marginals is not None:
        np.testing.assert_allclose([m[1] for m in marginals], reference.marginals, atol=1e-12)


def test_digits_rbm_by_its_smaller_layer():
    model, reference = catalogue.load("boltzmann/digits_rbm16"), catalogue.reference("boltzmann/digits_rbm16")
    W = model.dense()[:64, 64:]
    hidden = np.array(list(itertools.product((0, 1), repeat=16)))
    inputs = model.biases[:64] + hidden @ W.T
    weights = hidden @ model.biases[64:] + np.logaddexp(0, inputs).sum(axis=1)
    log_z = np.logaddexp.reduce(weights)
    p = np.exp(weights - log_z)
    assert log_z == pytest.approx(reference.log_z, abs=1e-10)
    np.testing.assert_allclose(
        np.concatenate([p @ (1 / (1 + np.exp(-inputs))), p @ hidden]), reference.marginals, atol=1e-12
    )


def test_evidence_of_promedus():
    model, reference = catalogue.load("uai14/Promedus_24"), catalogue.reference("uai14/Promedus_24")
    observed = sorted(set(range(200)) - set(model.origin.free.tolist()))
    assert observed == [25, 44, 63, 66]
    free = [np.array([0.75, 0.25])] * model.num_variables
    marginals = model.original_marginals(free)
    np.testing.assert_array_equal(marginals[observed], reference.marginals[observed])
    assert (np.delete(marginals, observed) == 0.25).all()


def test_which_are_boltzmann_machines():
    models = {
        name: catalogue.load(name) for name in SIZES if name.startswith(("uai14/Grids", "uai14/DBN", "uai14/Seg"))
    }
    assert len(models) == 5
    for name, graph in models.items():
        model = to_pairwise(graph, one_of_k=False)
        assert model.num_variables == SIZES[name][0]
        assert model.origin is None
        states = np.random.default_rng(0).integers(0, 2, size=(5, model.num_variables))
        np.testing.assert_allclose(model.log_weight(states), graph.log_weight(states), rtol=1e-12)
    assert to_pairwise(models["uai14/Grids_12"]).num_edges == 180
    assert to_pairwise(models["uai14/DBN_11"]).num_edges == 400


def test_object_detection_loses_its_impossible_state():
    graph = catalogue.load("uai14/ObjectDetection_11")
    model = to_pairwise(graph)
    assert isinstance(model, PairwiseModel)
    assert model.num_variables == 600
    assert {len(group) for group in model.groups} == {10}
    states = np.random.default_rng(0).integers(1, 11, size=(5, 60))
    np.testing.assert_allclose(model.log_weight(model.origin.lower(states)), graph.log_weight(states), rtol=1e-12)


def test_licences_stand_beside_the_files():
    assert (DATA / "uai14" / "LICENSE").read_text().startswith("MIT License")
    assert (DATA / "uai14hard" / "LICENSE").read_bytes() == (DATA / "uai14" / "LICENSE").read_bytes()
    assert "libDAI authors" in (DATA / "libdai" / "LICENSE").read_text()
    assert "Ori Maoz" in (DATA / "boltzmann" / "LICENSE.maxent_toolbox").read_text()
    notice = (DATA / "NOTICE").read_text()
    for folder in (path for path in DATA.iterdir() if path.is_dir() and path.name != "__pycache__"):
        assert f"{folder.name}/" in notice
    assert max(path.stat().st_size for path in DATA.rglob("*") if path.is_file()) < 1_000_000

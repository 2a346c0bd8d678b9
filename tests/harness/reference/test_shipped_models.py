"""Every shipped model against its trusted answer: log Z to 1e-9 relative, marginals to 1e-9."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.inference import answers
from spinbench.models import PairwiseModel, catalogue, to_pairwise

LONG = {f"uai14hard/{stem}" for stem in ("CSP_11", "Grids_15", "linkage_16", "linkage_21")}
# Solved within two seconds and a gigabyte.
QUICK = [name for name in catalogue.names() if name not in {*LONG, catalogue.UNANSWERED}]


def original_marginals(model, answer):
    """Of the variables in the file, observed ones included, in one vector."""
    marginals = answer.probabilities if isinstance(model, PairwiseModel) else answer.marginals
    return np.concatenate([np.atleast_1d(p) for p in model.original_marginals(marginals)])


@pytest.mark.parametrize("name", QUICK)
def test_answers(name):
    model, trusted = catalogue.load(name), catalogue.reference(name)
    answer = answers.solve(model, cache=False)
    # the log Z of libdai/alarm is nearly zero, and known to 12 digits after the point
    assert answer.log_z == pytest.approx(trusted.log_z, rel=1e-9, abs=1e-12)
    if trusted.marginals is not None:
        expected = np.concatenate([np.atleast_1d(p) for p in trusted.marginals])
        np.testing.assert_allclose(original_marginals(model, answer), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["boltzmann/digits_rbm16", "boltzmann/neural15", "libdai/testfast", "uai14/Grids_12"])
def test_second_ways_to_the_answer(name):
    """The bucket tree, and the Boltzmann machine that the model is."""
    model = catalogue.load(name)
    answer = answers.solve(model, cache=False)
    tree = answers.solve(model, method="bucket_tree", cache=False)
    machine = answers.solve(to_pairwise(model), cache=False)
    for other in (tree, machine):
        assert other.log_z == pytest.approx(answer.log_z, rel=1e-12)
    np.testing.assert_allclose(tree.probabilities, answer.probabilities, rtol=0, atol=1e-11)
    np.testing.assert_allclose(machine.probabilities, answer.probabilities, rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    "name", ["uai14/Promedus_24", "uai14/CSP_12", "boltzmann/digits_lattice", "boltzmann/neural15"]
)
def test_samples_have_the_marginals(name):
    model = catalogue.load(name)
    states = answers.sample(model, 20_000, seed=1)
    assert np.isfinite(model.log_weight(states)).all()
    for v, vector in enumerate(answers.solve(model, cache=False).marginals):
        share = np.bincount(states[:, v], minlength=vector.size) / 20_000
        error = np.sqrt(np.clip(vector * (1 - vector), 0, None) / 20_000)
        # over 1000 comparisons: 5 standard errors, and room for one draw of what is rarer than that
        assert (np.abs(share - vector) <= 5 * error + 1 / 20_000).all()

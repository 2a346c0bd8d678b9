"""The state that `find_mode` finds is a local maximum, and is known as long as its model is there."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.mathematics.graphs import modes
from spinbench.mathematics.graphs.sweep_layouts import by_variable
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import PairwiseModel, generators


@pytest.mark.parametrize("scan", ["chromatic", "raster", "random"])
@pytest.mark.parametrize("model", [generators.grid(4, 5, seed=0), generators.sherrington_kirkpatrick(9, seed=1)])
def test_no_single_change_raises_the_weight(model: PairwiseModel, scan: str) -> None:
    tables = Gibbs(scan=scan).plan(model)  # type: ignore[arg-type]
    state = by_variable(tables.order, tables.mode)  # type: ignore[union-attr]
    others = np.abs(state - np.eye(len(state)))
    assert (model.log_weight(others) <= model.log_weight(state)).all()


def test_what_was_found_is_searched_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, calls = generators.grid(4, 5, seed=0), []
    found = modes._found
    monkeypatch.setattr(modes, "_found", lambda *given: calls.append(1) or found(*given))
    first, second = Gibbs().plan(model).mode, Gibbs().plan(model).mode
    second[:] = 0.5  # a caller's own
    np.testing.assert_array_equal(first, Gibbs().plan(model).mode)
    assert len(calls) == 1
    Gibbs(scan="raster").plan(model)
    Gibbs().plan(generators.grid(4, 5, seed=0))
    assert len(calls) == 3

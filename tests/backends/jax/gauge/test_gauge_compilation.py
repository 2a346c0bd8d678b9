"""What the gauged methods compile on JAX, they compile before the clock of a run starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spinbench.backends.jax import JaxBackend
from spinbench.backends.jax.gauge.ascent import Ascent, ascent
from spinbench.backends.jax.gauge.batch import JaxGaugeKernel
from spinbench.inference.registry import make_method
from spinbench.models import generators


@pytest.mark.parametrize("name", ["g_bp_multiple", "g_mf"])
def test_a_search_compiles_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    traced = []  # a pass is called where it is compiled, and only there
    one_pass = Ascent._pass

    def counted(self: Ascent, *given: Any) -> Any:
        traced.append(self)
        return one_pass(self, *given)

    monkeypatch.setattr(Ascent, "_pass", counted)
    ascent.cache_clear()
    model, method = generators.ring(n=5), make_method(name, {"merge": 0})
    kernel = JaxGaugeKernel(method, JaxBackend(), model, method.plan(model))
    start = np.zeros((model.num_variables, 1), dtype=np.int8)
    kernel.warm(kernel.init(0, start), 1)
    assert len({id(one) for one in traced}) == (2 if name == "g_mf" else 1)
    before = len(traced)
    _, seen = kernel.advance(kernel.init(0, start), 10_000)
    assert seen["finished"][0] == 1
    assert 1 < seen["iterations"][0] < 10_000
    assert len(traced) == before

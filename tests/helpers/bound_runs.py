"""The bounds that methods give on many models of one graph, without compiling for each of them anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from spinbench.api import Estimate, Method, Precision
from spinbench.api.trace import Trace
from spinbench.inference import binding
from spinbench.inference.engine import ProgramEngine
from spinbench.methods.messages.trw_kernels import ArrayTRWKernel
from spinbench.models import Model

CHAINS = 3


def estimates(
    method: Method, backend: str, precision: Precision, models: Sequence[Model], batches: Sequence[int], warm: int = 0
) -> Iterator[tuple[Model, Estimate]]:
    """What is said of each model after each batch of steps, and after a burn-in of `warm` of them."""
    first: Any = None
    for k, model in enumerate(models):
        tables = method.plan(model)
        if first is None:
            engine = first = binding.bind(method, backend, model, tables, precision=precision).engine
        else:
            engine = _like(first, method, backend, precision, model, tables)
        start = np.random.default_rng(k).integers(0, 2, size=(model.num_variables, CHAINS), dtype=np.int8)
        state = engine.init(0, start)
        if warm:
            state = engine.adapt(engine.warm(state, warm), True)
        trace = Trace(method.reductions)
        for steps in batches:
            state, seen = engine.advance(state, steps)
            trace.add(seen, steps)
            yield model, method.estimate(model, tables, trace)


def _like(first: Any, method: Method, backend: str, precision: Precision, model: Model, tables: Any) -> Any:
    """An engine for another model that takes over what `first` has compiled."""
    if isinstance(first, ProgramEngine):
        first._tables = first._put(tables)
        return first
    engine = binding.bind(method, backend, model, tables, precision=precision).engine
    if isinstance(engine, ArrayTRWKernel):
        engine._compiled = first._compiled
    return engine

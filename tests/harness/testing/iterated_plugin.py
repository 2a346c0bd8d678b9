"""Mean field as an iteration with a kernel, and a sum over all states; both take a bug as a setting.

Installed by test_agreement.py.
"""

from dataclasses import dataclass

import numpy as np

from spinbench.api import Conformance, Estimate, FactorGraph, Kernel, Method, Program
from spinbench.errors import UnsupportedError

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Iterated(Method):
    bug: str = ""
    plain: bool = False
    """Changes nothing."""

    name = "iterated"
    summary = "mean field, all variables at once and half of the way"
    kind = "iteration"

    @property
    def reductions(self):
        return {"q": "last", "change": "last"}

    def plan(self, model):
        return model.biases.copy(), model.dense()

    def program(self, backend):
        def step(key, tables, state):
            fresh = 0.5 + 0.5 * backend.xp.tanh(0.5 * (tables[1] @ state[0] + tables[0][:, None]))
            moved = backend.xp.abs(fresh - state[0])
            change = moved[-1, :] if self.bug == "ends with the last variable" else backend.xp.max(moved, axis=0)
            return 0.5 * (state[0] + fresh), change

        return Program(
            init=lambda key, tables, start: (0 * start + 0.5, start[0, :] + 1.0),
            step=step,
            observe=lambda tables, state: {"q": state[0], "change": state[1]},
        )

    def finished(self, trace):
        return bool(trace.total("change").max() < TOLERANCE)

    def estimate(self, model, tables, trace):
        q = trace.total("q")[:, 0].astype(float)
        done = self.finished(trace)
        bound = {}
        if self.bug == "a bound at fixed points alone" and done:
            bound = {"log_z": model.log_constant - 9.0, "log_z_kind": "lower"}
        elif self.bug == "a bound at fixed points alone":
            bound = {"log_z": model.log_constant + float(np.logaddexp(0, 9 + abs(model.biases)).sum()) + 99.0}
            bound["log_z_kind"] = "lower"
        return Estimate(marginals=q, doubts=() if done else ("not converged",), **bound)


@dataclass(frozen=True)
class Exact(Iterated):
    """Says what mean field is not."""

    name = "sworn"
    conformance = Conformance(exact_on_trees=True)


class IteratedKernel(Kernel):
    def __init__(self, method, backend, model, tables):
        biases, dense = (array.astype(backend.precision) for array in tables)
        if method.bug == "the last coupling counts less":
            dense[-2:, -2:] *= 0.9
        if method.plain and method.bug == "fields where plain":
            biases *= 1.01
        if method.bug == "fields of large models":
            biases[64:] *= 1.01
        self.tables = biases, dense
        ends = {"a kernel that ends with the last variable": slice(-1, None)}
        ends["a kernel that ends with the first variable"] = slice(0, 1)
        self.looked = ends.get(method.bug, slice(None))

    def init(self, seed, start):
        return np.full(start.shape, 0.5), np.ones(start.shape[1])

    def advance(self, state, steps):
        q, change = state
        for _ in range(steps):
            fresh = 1 / (1 + np.exp(-(self.tables[1] @ q + self.tables[0][:, None])))
            moved = np.abs(fresh - q)
            change = moved[self.looked].max(axis=0)
            q = 0.5 * (q + fresh)
        return (q, change), {"q": q, "change": change}


@dataclass(frozen=True)
class Summed(Method):
    bug: str = ""

    name = "summed"
    summary = "the sum over all states"
    model_form = "any"
    kind = "direct"

    @property
    def reductions(self):
        return {"log_z": "last"}

    def plan(self, model):
        if not isinstance(model, FactorGraph) or model.num_variables > 6:
            raise UnsupportedError("summed takes factor graphs of up to 6 variables")
        sizes = model.cardinalities
        states = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), axis=-1)
        if self.bug == "products of tables":
            weights = np.ones(sizes)
            for factor in model.factors:
                scaled = np.exp(factor.log_table - factor.log_table.max())
                weights = weights * scaled[tuple(states[..., v] for v in factor.scope)]
            tops = sum(float(factor.log_table.max()) for factor in model.factors)
            with np.errstate(divide="ignore"):
                log_z = float(np.log(weights.sum())) + tops + model.log_constant
        else:
            log_z = float(np.logaddexp.reduce(model.log_weight(states), axis=None))
        return np.array(log_z)

    def program(self, backend):
        return Program(
            init=lambda key, tables, start: start[0, :] * 0 + tables,
            step=lambda key, tables, state: state,
            observe=lambda tables, state: {"log_z": state},
        )

    def estimate(self, model, tables, trace):
        return Estimate(log_z=float(tables), log_z_kind="exact")

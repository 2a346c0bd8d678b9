"""A correct Gibbs kernel that hands over the states of its chains, in which a test may plant a bug.

Installed as a plugin by test_planted_bugs.py.
"""

from dataclasses import dataclass

import numpy as np

from spinbench.api import Estimate, Kernel, Method, standard_error
from spinbench.errors import UnsupportedError


@dataclass(frozen=True)
class Kept(Method):
    bug: str = ""

    name = "kept"
    summary = "Gibbs in raster order"

    @property
    def reductions(self):
        return {"p": "sum"}

    def plan(self, model):
        if model.groups:
            raise UnsupportedError("kept takes binary variables")
        return model.biases.copy(), model.dense()

    def estimate(self, model, tables, trace):
        return Estimate(marginals=trace.mean("p").mean(axis=-1), marginals_se=standard_error(trace.series("p")))


class KeptKernel(Kernel):
    def __init__(self, method, backend, model, tables):
        self.bug, self.biases, self.dense = method.bug, *tables

    def init(self, seed, start):
        self.first = self.seldom = start.astype(np.int64)
        self.array = np.empty_like(self.first)
        return [seed, 0, self.first]

    def advance(self, state, steps):
        seed, index, s = state
        s, total = s.copy(), np.zeros(s.shape)
        for step in range(index, index + steps):
            u = np.random.default_rng((seed, step)).random(s.shape)
            for i in range(len(s)):
                p = 1 / (1 + np.exp(-self.biases[i] - self.dense[i] @ s))
                s[i], total[i] = u[i] < p, total[i] + p
        return [seed, index + steps, s], {"p": total}

    def states(self, state):
        s = state[2].copy()
        match self.bug:
            case "one array for few" if s.shape[1] < 8:
                self.array[:] = s
                return self.array
            case "one array for all":
                self.array[:] = s
                return self.array
            case "a step for each look":
                state[1] += 1
            case "from 1 on":
                return 1 + s
            case "in reverse order on large models" if len(s) > 64:
                return s[::-1]
            case "in reverse order":
                return s[::-1]
            case "of the start":
                return self.first
            case "of one chain":
                return np.repeat(s[:, :1], s.shape[1], axis=1)
            case "each variable's of another chain":
                return np.stack([np.roll(row, i) for i, row in enumerate(s)])
            case "of every tenth step":
                self.seldom = self.seldom if state[1] % 10 else s
                return self.seldom
        return s

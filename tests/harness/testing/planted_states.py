"""The planted kernel, which hands over the states of its chains, with bugs of these alone.

Installed as a plugin by test_planted_bugs.py, beside planted_kernel.py.
"""

from dataclasses import dataclass

import numpy as np
from planted_kernel import Planted, PlantedKernel


@dataclass(frozen=True)
class Kept(Planted):
    name = "kept"


class KeptKernel(PlantedKernel):
    def init(self, seed, start):
        self.seldom = start.astype(np.int64)
        self.array = np.empty_like(self.seldom)
        return super().init(seed, start)

    def states(self, state):
        s = state[2].astype(np.int64)
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

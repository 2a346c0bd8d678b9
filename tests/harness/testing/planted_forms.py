"""The planted kernel with bugs of one form of it alone: of a precision, a setting, several states, a way of cutting.

Installed as a plugin by test_planted_bugs.py, beside planted_kernel.py.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from planted_kernel import Planted, PlantedKernel

from spinbench.api import Bound

FORMS = {"in float32": "single", "of several states": "kary", "backwards": "back"}


@dataclass(frozen=True)
class Formed(Planted):
    mirrored: bool = False
    """Draw with 1 - u in the place of u."""
    pace: int | Literal["auto"] | None = 1
    """Changes nothing."""

    name = "formed"
    summary = "Gibbs in raster order, wrong in one form"

    def estimate(self, model, tables, trace):
        found = super().estimate(model, tables, trace)
        dense, chains = model.dense(), trace.series("p").shape[-1]
        match self.bug:
            case "log Z without an error":
                return replace(found, log_z=found.log_z + 50, log_z_kind="estimate")
            case "errors of few chains a tenth backwards" if self.order == "backward" and 2 <= chains <= 8:
                return replace(found, marginals_se=found.marginals_se / 10)
            case "a wrong estimator of log Z beside":
                return replace(found, log_z_estimates={"start": (found.log_z + 99, 0.1)})
            case "errors forget how long batches are":
                steps = trace.samples / trace.series("p").shape[0]
                return replace(found, marginals_se=found.marginals_se * np.sqrt(2 / steps))
            case "errors of few chains a tenth" if 2 <= chains <= 8:
                return replace(found, marginals_se=found.marginals_se / 10)
            case "forgets what was observed of two states" if model.origin is not None and not model.groups:
                return replace(found, marginals=found.marginals[::-1])
            case "certified bound above on large models" if len(tables[0]) > 64:
                most = float(np.logaddexp(0, model.biases).sum() + np.maximum(dense, 0).sum() / 2)
                return replace(found, bounds=(Bound(model.log_constant + most + 1, "lower", "certified"),))
            case "no doubts":
                return replace(found, doubts=())
            case "R-hat of several states is 1" if model.groups:
                return replace(found, r_hat=np.ones(len(found.r_hat)))
            case "R-hat of large models is unknown" if len(tables[0]) > 64:
                return replace(found, r_hat=np.full(len(found.r_hat), np.nan))
            case "draws of which each variable is right" if not model.groups:
                u = np.random.default_rng(2).random((len(found.marginals), 4096))
                return replace(found, draws=((u < found.marginals[:, None]).astype(np.int8), None))
        return found


class FormedKernel(PlantedKernel):
    def __init__(self, method, backend, model, tables):
        super().__init__(method, backend, model, tables)
        forms = {"single": self.real.itemsize == 4, "kary": bool(model.groups), "back": self.order == "backward"}
        wanted = [name for words, name in FORMS.items() if self.bug.endswith(words)]
        self.wrong = all(forms[name] for name in wanted)
        self.mirrored = method.mirrored
        n = len(self.biases)
        if self.bug == "no field of the last of 4n + 3 variables" and n > 8 and n % 4 == 3:
            self.biases[-1] += 1
        if self.bug == "half of the couplings of 16 neighbours":
            rows = (self.dense != 0).sum(axis=1) == 16
            self.dense[rows] /= 2
        if self.bug == f"no fields at pace {method.pace}":
            self.biases[:] = 0
        if self.bug == "no fields where mirrored backwards" and self.mirrored and forms["back"]:
            self.biases[:] = 0
        if self.wrong and self.bug.startswith("no fields beyond 64"):
            self.biases[64:] = 0

    def _update(self, s, p, unit, field, u, moving):
        flat = self.bug == "six states alike" and len(unit) == 6
        super()._update(s, p, unit, 0 * field if flat else field, u, moving)

    def _sweep(self, s, u, scale):
        before = s.copy()
        p = super()._sweep(s, u, scale)
        still = np.zeros(s.shape, dtype=bool)
        if self.wrong and self.bug.startswith("chains beyond 16 stand still"):
            still[:, s.shape[1] // 16 * 16 :] = s.shape[1] > 16
        if self.wrong and self.bug.startswith("variables beyond 64 stand still"):
            still[64:] = True
        if self.bug == "the last two of 4n + 2 chains stand still" and s.shape[1] % 4 == 2:
            still[:, -2:] = True
        if self.bug == "the last of 8n + 7 chains stands still" and s.shape[1] % 8 == 7:
            still[:, -1] = True
        s[still] = before[still]
        return np.where(still, before, p)

    def init(self, seed, start):
        return super().init(int(float(seed)) if self.bug == "seed of 53 bits" else seed, start)

    def warm(self, state, steps):
        if self.wrong and self.bug == "burn-in does nothing backwards":
            return state
        return super().warm(state, steps)

    def advance(self, state, steps):
        state, found = super().advance(state, steps)
        if self.bug == "forgets the last step backwards" and self.wrong and steps > 3:
            found["p"] = found["p"] * (1 - 1 / steps)
        if self.bug == "sums overflow after 256 steps" and steps >= 256:
            found["p"] = found["p"] % 128
        return state, found

    def _numbers(self, seed, step, index, shape):
        if self.wrong and self.bug.startswith("one generator"):
            return self.rng.random(shape)
        u = super()._numbers(seed, step, index, shape)
        if self.wrong and self.bug.startswith("numbers shared by four chains"):
            u = u[:, np.arange(shape[1]) // 4 * 4]
        if self.bug == "what 4n chains leave over shares numbers" and shape[1] > 4:
            over = shape[1] % 4
            u[:, shape[1] - over :] = u[:, :over]
        return 1 - u if self.mirrored else u

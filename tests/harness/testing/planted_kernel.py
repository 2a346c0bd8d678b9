"""A correct Gibbs kernel on NumPy that takes a bug as a setting; variables may have several states.

Installed as a plugin by test_planted_bugs.py, which checks that the suite finds every bug and says what it is.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from spinbench import exact
from spinbench.api import (
    Bound,
    Estimate,
    Kernel,
    Method,
    effective_sample_size,
    marginal_claims,
)
from spinbench.errors import SpinbenchError
from spinbench.mathematics.claims import BOUND

_PLANS = {}


@dataclass(frozen=True)
class Planted(Method):
    bug: str = ""
    order: Literal["forward", "backward"] = "forward"
    sweeps: int = 1
    returns: int = 0
    """Further sweeps backwards."""

    name = "planted"
    summary = "Gibbs in raster order"

    def __post_init__(self):
        if self.sweeps < 1:
            raise SpinbenchError(f"planted: sweeps={self.sweeps} was given; at least 1 is needed")

    @property
    def reductions(self):
        return {"p": "sum"}

    def plan(self, model):
        if self.bug == "keeps plans by their size":
            return _PLANS.setdefault(len(model.biases), (model.biases.copy(), model.dense()))
        return model.biases.copy(), model.dense()

    def estimate(self, model, tables, trace):
        n = model.num_variables
        series = trace.series("p")
        claims = marginal_claims(series, trace.samples, np.zeros(n), np.ones(n))
        marginals, errors = trace.mean("p").mean(axis=-1), claims.error_bounds / BOUND
        if not self.bug:
            errors = claims.se
        kary = bool(model.groups)
        match self.bug:
            case "no errors":
                errors = None
            case "no errors of several states" if kary:
                errors = None
            case "errors 30 times too large":
                errors = 30 * errors
            case "errors 30 times too large on large models" if n > 64:
                errors = 30 * errors
            case "errors of several states 30 times too large" if kary:
                errors = 30 * errors
            case "errors of several states halved" if kary:
                errors = errors / 2
            case "errors a third too small":
                errors = errors / 3
            case "reports zeros" if not kary:
                marginals = 1 - marginals
            case "no errors of one chain" if series.shape[-1] == 1:
                errors = 0 * errors
            case "no number of one sample" if trace.samples == 1:
                marginals = marginals * np.nan
            case "forgets what was observed" if model.origin is not None:
                marginals = marginals[::-1]
            case "uniform several states" if kary:
                marginals = _uniform(marginals, model.groups)
            case "uniform several states, wide" if kary:
                marginals, errors = _uniform(marginals, model.groups), np.ones(n)
            case "states in another order" if kary:
                for group in map(list, model.groups):
                    marginals[group] = marginals[group[::-1]]
        doubts = (f"marginals {claims.doubt}",) if claims.doubt and self.bug != "no errors of one chain" else ()
        if self.bug == "doubts everything":
            doubts = ("marginals not mixed",)
        ess = effective_sample_size(marginals, claims.mcse, trace.samples * series.shape[-1])
        alone = series.shape[-1] == 1
        r_hat = claims.r_hat
        match self.bug:
            case "effective samples times 10":
                ess = 10 * ess
            case "effective samples of one chain are its steps" if alone:
                ess = np.full(n, float(trace.samples))
            case "effective samples a hundredth":
                ess = ess / 100
            case "R-hat is 1":
                r_hat = np.ones(n)
            case "R-hat of one chain is 1" if alone:
                r_hat = np.ones(n)
        more = {**_bound(self.bug, model, n), **_beside(self.bug, model, marginals)}
        return Estimate(marginals=marginals, marginals_se=errors, ess=ess, r_hat=r_hat, doubts=doubts, **more)


def _beside(bug, model, marginals):
    """Wrong pairs, draws and bounds."""
    most = model.log_constant + float(np.logaddexp(0, model.biases).sum() + np.maximum(model.dense(), 0).sum() / 2)
    match bug:
        case "pairs are products":
            return {"pairs": marginals[model.edges].prod(axis=1)}
        case "pairs backwards" if model.num_variables < 16 and not model.groups:
            pairs = exact(replace(model, origin=None), pairs=True, cache=False).pairs
            return {"pairs": pairs[::-1]}
        case "draws of any law":
            return {"draws": (np.random.default_rng(1).integers(0, 2, (len(marginals), 999)), None)}
        case "certified bound above":
            return {"bounds": (Bound(most + 1, "lower", "certified"),)}
        case "probable bound above":
            return {"bounds": (Bound(most + 1, "lower", "probable", 0.01),)}
    return {}


def _uniform(marginals, groups):
    marginals = marginals.copy()
    for group in map(list, groups):
        marginals[group] = 1 / len(group)
    return marginals


def _bound(bug, model, n):
    """log Z as a bound, from the states 0 … 0 or from what is largest."""
    states = np.zeros((1, n))
    for group in model.groups:
        states[0, group[0]] = 1
    lower = float(model.log_weight(states.astype(np.int8))[0])
    dense = model.dense()
    upper = model.log_constant + float(np.logaddexp(0, model.biases).sum() + np.maximum(dense, 0).sum() / 2)
    match bug:
        case "lower bound above on large models" if n > 64:
            return {"log_z": upper + 0.1, "log_z_kind": "lower"}
        case "lower bound above":
            return {"log_z": upper + 0.1, "log_z_kind": "lower"}
        case "upper bound of two states" if model.groups:
            return {"log_z": lower, "log_z_kind": "upper"}
        case "upper bound ignores couplings":
            return {"log_z": upper - float(np.maximum(dense, 0).sum() / 2), "log_z_kind": "upper"}
    return {"log_z": lower, "log_z_kind": "lower"}


class PlantedKernel(Kernel):
    def __init__(self, method, backend, model, tables):
        self.bug, self.model, self.order, self.sweeps = method.bug, model, method.order, method.sweeps
        match self.bug:
            case "sweeps modulo 128":
                self.sweeps = max(self.sweeps % 128, 1)
            case "a hundred sweeps at most":
                self.sweeps = min(self.sweeps, 100)
        self.returns = method.returns if method.order == "backward" else 0
        self.real = np.dtype(backend.precision)
        if self.bug in ("float32 in float64", "float64 in float32"):
            self.real = np.dtype(self.bug[-7:])
        self.tables = tables
        biases, dense = tables
        self.biases, self.dense = biases.astype(self.real), dense.astype(self.real)
        match self.bug:
            case "couplings of the other sign":
                self.dense *= -1
            case "no fields":
                self.biases *= 0
            case "couplings cut at 8":
                self.dense = self.dense.clip(-8, 8)
            case "one field is lost" if len(biases) > 3:
                self.biases[3] = 0
            case "one coupling is lost" if len(biases) > 1:
                self.dense[0, 1] = self.dense[1, 0] = 0
            case "warmer":
                self.biases, self.dense = 0.7 * self.biases, 0.7 * self.dense
            case "warmer by a fiftieth":
                self.biases, self.dense = 0.98 * self.biases, 0.98 * self.dense
            case "neighbours beyond 255 are forgotten":
                self.dense[(self.dense != 0).cumsum(axis=1) > 255] = 0
        if self.bug == "couplings beyond 8 neighbours count twice":
            self.dense[(self.dense != 0).sum(axis=1) > 8] *= 2
        if self.bug == "neighbours beyond 8 are forgotten":
            self.dense[(self.dense != 0).cumsum(axis=1) > 8] = 0
        if self.bug == "variables beyond 64 without a field":
            self.biases[64:] = 0
        grouped = {i: list(group) for group in model.groups for i in group}
        self.units = [grouped.get(i, [i]) for i in range(len(biases)) if grouped.get(i, [i])[0] == i]
        if method.order == "backward":
            self.units = self.units[:0:-1] if self.bug == "forgets a variable backwards" else self.units[::-1]
        self.rng = np.random.default_rng(5)
        self.calls = 0

    def init(self, seed, start):
        if self.bug == "salted seed":
            seed = hash(f"planted {seed}") % 2**62
        if self.bug == "takes the memory as it lies":
            start = start.ravel(order="K").reshape(start.shape)
        seed = {
            "ignores the seed": 0,
            "seed of 32 bits": seed % 2**32,
            "seed of half": seed // 2,
            "seed of six digits": seed % 10**6,
        }.get(self.bug, seed)
        state = start.astype(self.real)
        if self.bug == "writes into the start":
            start[:] = 0
        if self.bug == "keeps its state":
            self.kept = state
        self.buffer, self.first = np.zeros_like(state), state.copy()
        scale = self.real.type(1.0)
        return [seed, 0, state, scale]

    def warm(self, state, steps):
        if self.bug == "adapts after the end":
            state[3] = self.real.type(1.0)
        if self.bug == "burn-in does nothing":
            return state
        if self.bug == "burn-in of every tenth step":
            return super().warm(state, steps // 40)
        return super().warm(state, steps)

    def adapt(self, state, last):
        if self.bug == "adapts after the end" and last:
            state[3] = self.real.type(0.9)
        if self.bug == "burn-in ends where it began" and last:
            return [*state[:2], self.first, *state[3:]]
        return state

    def look(self, state):
        if self.bug == "looks count as steps":
            state[1] += 1
        return {}

    def advance(self, state, steps):
        seed, index, s, scale = state
        s = self.kept if self.bug == "keeps its state" else s.copy()
        total = np.zeros_like(s)
        self.calls += 1
        if self.bug == "writes into the tables":
            self.tables[0][:] += 0.01
        for step in range(index, index + steps):
            p = self._sweep(s, self._numbers(seed, step, index, s.shape), scale)
            warmer = 0.7 if self.bug == "second sweeps are warmer" else 1.0
            for sweep in range(self.returns):
                again = self.bug == "returns are warmer"
                u = np.random.default_rng((seed, step, sweep, 1)).random(s.shape)
                p = self._sweep(s, u, scale * (0.7 if again else 1.0))
            for sweep in range(1, self.sweeps):
                p = self._sweep(s, np.random.default_rng((seed, step, sweep)).random(s.shape), scale * warmer)
            if not (self.bug == "forgets the last step" and steps > 3 and step == index + steps - 1):
                total += p
            if self.bug == "forgets what 64 leave over" and steps > 64 and step >= index + steps // 64 * 64:
                total -= p
            if self.bug == "adapts after the end" and scale < 1:
                scale = self.real.type(1 - (1 - scale) * 0.9)
        if self.bug == "one buffer":
            self.buffer[:] = total
            total = self.buffer
        return [seed, index + steps, s, scale], {"p": total}

    def _numbers(self, seed, step, index, shape):
        chains = shape[1]
        match self.bug:
            case "numbers of the call":
                return np.random.default_rng((seed, self.calls, step)).random(shape)
            case "numbers of the batch":
                return np.random.default_rng((seed, index, step - index)).random(shape)
            case "one generator":
                return self.rng.random(shape)
            case "chains end after 1000 steps" if step > 1000:
                return np.full(shape, 0.5)
            case "numbers repeat after 1000 steps":
                return np.random.default_rng((seed, step % 1000)).random(shape)
            case "numbers shared by variables 64 apart":
                return np.random.default_rng((seed, step)).random(shape)[np.arange(shape[0]) % 64]
            case "numbers of the next variable a step later":
                rows = [np.random.default_rng((seed, step + i)).random(chains) for i in range(shape[0])]
                return np.stack(rows)
            case "numbers shared by chains 300 apart":
                return np.random.default_rng((seed, step)).random((shape[0], 300))[:, np.arange(chains) % 300]
            case "numbers shared by chains at one variable":
                u = np.random.default_rng((seed, step)).random(shape)
                u[1] = u[1, 0]
                return u
            case "numbers shared by chains":
                return np.repeat(np.random.default_rng((seed, step)).random((shape[0], 1)), chains, axis=1)
            case "numbers shared by neighbours":
                return np.repeat(np.random.default_rng((seed, step)).random((shape[0], chains // 2 + 1)), 2, 1)[
                    :, :chains
                ]
            case "mirrored chains":
                u = np.random.default_rng((seed, step)).random((shape[0], (chains + 1) // 2))
                return np.concatenate([u, 1 - u], axis=1)[:, :chains]
            case "chains of the next seed":
                columns = [np.random.default_rng((seed + c, step)).random(shape[0]) for c in range(chains)]
                return np.stack(columns, axis=1)
        return np.random.default_rng((seed, step)).random(shape)

    def _sweep(self, s, u, scale):
        """One sweep of s, in place; p(s_i = 1 | rest) as of each update."""
        chains, p = s.shape[1], np.zeros_like(s)
        moving = slice(None)
        if self.bug == "chains beyond 16 stand still" and chains > 16:
            moving = slice(0, chains // 16 * 16)
        if self.bug == "chains beyond 4096 stand still" and chains > 4096:
            moving = slice(0, 4096)
        if self.bug == "one chain stands still" and chains == 1:
            moving = slice(0, 0)
        if self.bug == "the last of three stands still" and chains == 3:
            moving = slice(0, 2)
        before = s.copy()
        for unit in self.units:
            if self.bug == "variables beyond 64 stand still" and unit[0] >= 64:
                p[unit] = s[unit]
                continue
            field = self.dense[unit] @ (before if self.bug == "all at once" else s) + self.biases[unit][:, None]
            if self.bug == "the last chain is warmer" and chains % 4:
                field[:, chains // 4 * 4 :] *= 0.5
            if self.bug == "fields cut at 8":
                field = field.clip(-8, 8)
            self._update(s, p, unit, field * scale, u[unit[0]], moving)
        if moving != slice(None):
            p = np.where(np.isin(np.arange(chains), np.arange(chains)[moving]), p, s)
        return p

    def _update(self, s, p, unit, field, u, moving):
        # Single precision rounds to 1 what is close to it.
        u = np.minimum(u.astype(self.real), np.nextafter(self.real.type(1), self.real.type(0)))
        if len(unit) == 1:
            (i,) = unit
            p[i] = 1 / (1 + np.exp(-field[0]))
            if self.bug == "what is rare never happens":
                p[i] = np.where(p[i] < 0.2, 0, p[i])
            s[i, moving] = (u < p[i])[moving]
            return
        weights = np.exp(field - field.max(axis=0))
        if self.bug == "the first state twice":
            weights[0] *= 2
        if self.bug == "the first state twice in float32" and self.real.itemsize == 4:
            weights[0] *= 2
        if self.bug == "the first state twice backwards" and self.order == "backward":
            weights[0] *= 2
        if self.bug == "the first state twice beyond 128" and unit[0] > 128:
            weights[0] *= 2
        if self.bug == "states beyond 8 never happen":
            weights[8:] = 0
        p[unit] = weights / weights.sum(axis=0)
        chosen = np.minimum((u > np.cumsum(p[unit], axis=0)).sum(axis=0), len(unit) - 1)
        s[unit] = np.arange(len(unit))[:, None] == chosen

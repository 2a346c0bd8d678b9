"""A correct Gibbs kernel, quick on large models, in which a test may plant a bug that shows late, rarely or far out.

Installed as a plugin by test_planted_bugs.py, which checks that the suite finds every bug and says what it is.
"""

import os
from dataclasses import dataclass, replace

import numpy as np

from spinbench.api import Bound, Estimate, Kernel, Method, effective_sample_size, marginal_claims
from spinbench.methods.baselines.weighted import Importance
from spinbench.methods.messages.mf import MeanField

LEAKED = []
# Steps after which bugs that come late begin.
LATE = 700


@dataclass(frozen=True)
class Flawed(Method):
    bug: str = ""

    name = "flawed"
    summary = "Gibbs in raster order"

    @property
    def reductions(self):
        return {"p": "sum"}

    def plan(self, model):
        if self.bug == "plan changes the folder":
            os.chdir("/")
        return model.biases.copy()

    def estimate(self, model, tables, trace):
        n = model.num_variables
        series = trace.series("p")
        chains = series.shape[-1]
        match self.bug:
            case "the last chain is left out" if chains > 1:
                series = series[..., :-1]
            case "the first chain counts twice":
                series = np.concatenate([series, series[..., :1]], axis=-1)
            case "the last of 16 chains is left out" if chains > 1:
                series = series[..., np.arange(chains) % 16 < 15] if chains >= 16 else series
            case "estimate changes the folder":
                os.chdir("/")
            case "estimate changes the environment":
                os.environ["FLAWED"] = "1"
        claims = marginal_claims(series, trace.samples, np.zeros(n), np.ones(n))
        factor = {
            "errors times 1.4": 1.4,
            "errors times 0.7": 0.7,
            "errors of several states times 0.7": 0.7 if model.groups else 1.0,
            "errors of several states times 1.4": 1.4 if model.groups else 1.0,
            "errors of large models times 0.7": 0.7 if n > 64 else 1.0,
        }.get(self.bug, 1.0)
        marginals = series.mean(axis=(0, -1))
        doubts = (f"marginals {claims.doubt}",) if claims.doubt else ()
        ess = effective_sample_size(marginals, claims.mcse, trace.samples * series.shape[-1])
        return Estimate(
            marginals=marginals,
            marginals_se=factor * claims.se,
            marginals_error_bound=factor * claims.error_bounds,
            ess=ess,
            r_hat=claims.r_hat,
            doubts=doubts,
        )


class FlawedKernel(Kernel):
    def __init__(self, method, backend, model, tables):
        self.bug, self.biases, n = method.bug, tables, model.num_variables
        self.real = np.dtype(backend.precision)
        neighbours = [[] for _ in range(n)]
        for (i, j), coupling in zip(model.edges.tolist(), model.couplings.tolist(), strict=True):
            neighbours[i].append((j, coupling))
            neighbours[j].append((i, coupling))
        self.rows = [(np.array([j for j, _ in row], int), np.array([w for _, w in row])) for row in neighbours]
        groups = list(map(list, model.groups))
        match self.bug:
            case "groups are ignored":
                groups = []
            case "groups beyond the first are ignored":
                groups = groups[:1]
            case "groups of more than three are ignored":
                groups = [group for group in groups if len(group) <= 3]
        grouped = {i: group for group in groups for i in group}
        self.units = [grouped.get(i, [i]) for i in range(n) if grouped.get(i, [i])[0] == i]
        self.groups = groups
        if self.bug == "no fields beyond 1500 variables" and n > 1500:
            self.biases = self.biases * 0
        if self.bug == "no fields of variables beyond 1500":
            self.biases = np.where(np.arange(n) < 1500, self.biases, 0)
        if self.bug == "weak couplings beyond 1500 variables" and n > 1500:
            self.rows = [(columns, 0.9 * weights) for columns, weights in self.rows]
        self.pace, self.still = 1.0, {}

    def init(self, seed, start):
        s = start.astype(np.float64)
        match self.bug:
            case "starts of several states in reverse order":
                for group in self.groups:
                    s[group] = s[group[::-1]]
            case "the first start in reverse order" if self.groups:
                s[self.groups[0]] = s[self.groups[0][::-1]]
        return {"seed": seed, "step": 0, "s": s, "pace": np.ones(1), "paces": np.ones(s.shape[1])}

    def warm(self, state, steps):
        if self.bug != "burn-in is warmer":
            return self.advance(state, steps)[0]
        self.pace = 0.5
        state, self.pace = self.advance(state, steps)[0], 1.0
        return state

    def advance(self, state, steps):
        if self.bug == "a step changes the folder" and state["step"] > 20:
            os.chdir("/")
        s, total = state["s"].copy(), np.zeros(state["s"].shape)
        state = dict(state, s=s, pace=state["pace"].copy(), paces=state["paces"].copy())
        for index in range(state["step"], state["step"] + steps):
            u = self._uniform(state["seed"], index, s.shape)
            p = self._sweep(s, u, state)
            total += self._late(p, index)
            self._adapt_for_ever(state, s)
        state["step"] += steps
        return state, {"p": total}

    def _late(self, p, index):
        if index < LATE:
            return p
        match self.bug:
            case "an exception late":
                raise IndexError("index 4096 is out of bounds")
            case "memory leaks late":
                LEAKED.append(np.ones(1 << 17))
            case "no numbers late":
                return p * np.nan
            case "chains stand still late":
                return self.still.setdefault(p.shape, p.copy())
            case "half late":
                return 0.5 * p + 0.25
        return p

    def _adapt_for_ever(self, state, s):
        match self.bug:
            case "a pace in an array goes on":
                state["pace"] *= 0.999
            case "paces of chains go on":
                state["paces"] = 0.9 * state["paces"] + 0.1 * (0.5 + s.mean(axis=0))
            case "a pace of the kernel goes on":
                self.pace = 0.9 * self.pace + 0.1 * (0.5 + s.mean())

    def _uniform(self, seed, index, shape):
        rng = np.random.default_rng((seed, index))
        match self.bug:
            case "numbers shared by chains 4096 apart":
                return rng.random((shape[0], 4096))[:, np.arange(shape[1]) % 4096]
            case "uniforms reach 1":
                return ((rng.integers(0, 2**24, shape) + 1) * 2.0**-24).astype(np.float32)
            case "uniforms are rounded to 1":
                return rng.random(shape).astype(np.float32)
            case "uniforms reach 1 in float32" if self.real.itemsize == 4:
                return rng.random(shape).astype(np.float32)
        return rng.random(shape)

    def _sweep(self, s, u, state):
        p = np.empty(s.shape, self.real)
        scale = state["pace"][0] * state["paces"] * self.pace
        if self.bug == "warmer beyond 4096 chains" and s.shape[1] > 4096:
            scale = scale * 0.9
        before = s.copy()
        if self.bug == "chains beyond 4096 are warmer":
            scale = np.where(np.arange(s.shape[1]) < 4096, scale, 0.5)
        for unit in self.units:
            fields = np.empty((len(unit), s.shape[1]), self.real)
            for k, i in enumerate(unit):
                columns, weights = self.rows[i]
                fields[k] = (self.biases[i] + weights @ s[columns]) * scale
            if len(unit) == 1:
                with np.errstate(over="ignore"):
                    p[unit] = 1 / (1 + np.exp(-fields))
                s[unit] = u[unit] < p[unit]
                continue
            weights = np.exp(fields - fields.max(axis=0))
            p[unit] = weights / weights.sum(axis=0)
            chosen = np.minimum((u[unit[0]] > np.cumsum(p[unit], axis=0)).sum(axis=0), len(unit) - 1)
            s[unit] = np.arange(len(unit))[:, None] == chosen
        if self.bug == "chains beyond 4096 stand still":
            s[:, 4096:] = before[:, 4096:]
        return p

    def states(self, state):
        s = state["s"].astype(np.int8)
        if self.bug == "states in reverse order":
            for group in self.groups:
                s[group] = s[group[::-1]]
        return s


@dataclass(frozen=True)
class Weighed(Importance):
    bug: str = ""

    name = "weighed"

    def estimate(self, model, tables, trace):
        estimate = super().estimate(model, tables, trace)
        factor = {"errors of log Z times 0.7": 0.7, "errors of log Z times 1.4": 1.4}.get(self.bug, 1.0)
        error = factor * (estimate.log_z_se or 0.0)
        if self.bug == "a bound of two errors":
            return replace(estimate, bounds=(Bound(estimate.log_z + 2 * error, "upper", "certified"),))
        return replace(estimate, log_z_se=error, log_z_error_bound=factor * (estimate.log_z_error_bound or 0.0))


@dataclass(frozen=True, kw_only=True)
class Averaged(MeanField):
    bug: str = ""

    name = "averaged"

    def estimate(self, model, tables, trace):
        estimate = super().estimate(model, tables, trace)
        if self.bug == "no constant":
            return replace(estimate, log_z=estimate.log_z - model.log_constant)
        if self.bug == "soft zeros" and isinstance(estimate.marginals, list):
            return replace(estimate, marginals=[0.99 * p + 0.01 / len(p) for p in estimate.marginals])
        return estimate

    def program(self, backend):
        program, xp = super().program(backend), backend.xp

        def step(key, tables, state):
            state = program.step(key, tables, state)
            return state._replace(values=xp.astype(xp.astype(state.values, xp.float32), state.values.dtype))

        return replace(program, step=step) if self.bug == "float32 in float64" else program


@dataclass(frozen=True, kw_only=True)
class Grouped(Averaged):
    name = "grouped"
    model_form = "pairwise"

    def plan(self, model):
        return super().plan(self._as_seen(model))

    def estimate(self, model, tables, trace):
        return super().estimate(self._as_seen(model), tables, trace)

    def _as_seen(self, model):
        return replace(model, groups=()) if self.bug == "groups are ignored" else model

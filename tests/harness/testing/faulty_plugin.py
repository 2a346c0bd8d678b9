"""A correct sampler and a correct kernel that take a fault as a setting, and NumPy backends with one fault each.

Installed as a plugin by test_testing.py, which checks that the conformance suite finds every fault.
"""

import wave  # noqa: F401  the framework that class Eager must not import here
from dataclasses import dataclass, replace
from itertools import count
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from spinbench.api import Estimate, Kernel, Method, Program, standard_error
from spinbench.errors import UnsupportedError
from spinbench.testing import NumpyBackend


class ToyTables(NamedTuple):
    biases: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class Toy(Method):
    name = "toy"
    summary = "Gibbs in raster order"
    fault: str = ""

    @property
    def reductions(self):
        return {"s": "sum"}

    def plan(self, model):
        if model.groups and self.fault != "ignores groups":
            raise UnsupportedError("two\nlines" if self.fault == "rambles" else "toy knows no groups")
        if self.fault == "asks NumPy for too much":
            np.reshape(model.biases, (-1, -1))
        if self.fault == "writes to the model" and model.num_variables > 1:
            model.biases.setflags(write=True)
            model.biases[0] += 1.0
            tables = ToyTables(model.biases.copy(), model.dense())
            return tables
        return ToyTables(model.biases * (1.15 if self.fault == "wrong target" else 1.0), model.dense())

    def program(self, backend):
        xp, calls = backend.xp, count()

        def step(key, tables, s):
            if self.fault == "depends on earlier calls":
                key = backend.fold_in(key, next(calls))

            def site(i, s):
                u = backend.uniform(backend.fold_in(key, i), (s.shape[1],))
                on = xp.log(u / (1 - u)) < tables.weights[i] @ s + tables.biases[i]
                return backend.update(s, i, xp.astype(on, backend.real))

            return backend.fori_loop(0, tables.biases.shape[0], site, s)

        def observe(tables, s):
            return {"s": s * float("nan") if self.fault == "reports NaN" else s}

        return Program(init=lambda key, tables, start: start, step=step, observe=observe)

    def estimate(self, model, tables, trace):
        errors = standard_error(trace.series("s"))
        found = Estimate(marginals=trace.mean("s").mean(axis=-1), marginals_se=errors)
        match self.fault:
            case "both states":
                both = np.stack([1 - found.marginals, found.marginals], axis=1)
                return replace(found, marginals=both, marginals_se=np.repeat(errors[:, None], 2, axis=1))
            case "asks spinbench for too much":
                standard_error(errors[0])
            case "wrong shape":
                return replace(found, ess=np.ones(model.num_variables + 1))
            case "wrong log Z":
                return replace(found, log_z=0.0, log_z_se=0.01)
        return found


@dataclass(frozen=True)
class Cut(Toy):
    name = "cut"
    summary = "toy with a kernel alone"
    program = Method.program

    def plan(self, model):
        if model.num_variables > 12:
            raise UnsupportedError("more than 12 variables are too many to enumerate")
        return super().plan(model)


class CutKernel(Kernel):
    """Sampling in state space from the exact law: independent draws, quick to write."""

    def __init__(self, method, backend, model, tables):
        self.fault, self.real = method.fault, np.dtype(backend.precision)
        n = model.num_variables
        self.all_states = ((np.arange(2**n) >> np.arange(n)[:, None]) & 1).astype(float)
        weights = model.log_weight(self.all_states.T)
        law = np.exp(weights - np.logaddexp.reduce(weights))
        self.cumulative, self.marginals = np.cumsum(law), self.all_states @ law

    def init(self, seed, start):
        return (seed, 0, start.shape[1])

    def advance(self, state, steps):
        seed, index, chains = state
        total = np.zeros((len(self.all_states), chains))
        for step in range(index, index + steps):
            rng = np.random.default_rng((seed, step))
            if self.fault == "keeps marginals alone":
                total += rng.random(total.shape) < self.marginals[:, None]
            else:
                total += self.all_states[:, np.searchsorted(self.cumulative[:-1], rng.random(chains))]
        return (seed, index + steps, chains), {"s": total.T if self.fault == "chains first" else total}


@dataclass(frozen=True)
class Weighted(Cut):
    name = "weighted"
    summary = "importance sampling with uniform proposals"

    @property
    def reductions(self):
        return {"s": "logsumexp", "w": "logsumexp"}

    def estimate(self, model, tables, trace):
        s, w = np.exp(trace.total("s")), np.exp(trace.total("w"))
        marginals = s.sum(axis=-1) / w.sum()
        residuals = s - marginals[:, None] * w
        errors = residuals.std(axis=-1) / w.mean() / np.sqrt(w.size)
        doubts = () if w.size > 1 else ("marginals too few chains",)
        return Estimate(marginals=marginals, marginals_se=errors, doubts=doubts)


class WeightedKernel(CutKernel):
    """Independent draws, too, but each with a weight."""

    def advance(self, state, steps):
        seed, index, chains = state
        weights = (np.diff(self.cumulative, prepend=0.0) * len(self.cumulative)).astype(self.real)
        s, w = np.zeros((len(self.all_states), chains), self.real), np.zeros(chains, self.real)
        for step in range(index, index + steps):
            drawn = np.random.default_rng((seed, step)).integers(len(weights), size=chains)
            s += weights[drawn] * self.all_states[:, drawn].astype(self.real)
            w += weights[drawn]
        with np.errstate(divide="ignore"):
            statistics = {"s": np.log(s), "w": np.log(w)}
        return (seed, index + steps, chains), statistics


@dataclass(frozen=True)
class Halving(Method):
    """Not a sampler: m goes halfway to the independent means in each step."""

    name = "halving"
    summary = "right where nothing is coupled"
    kind = "iteration"
    fault: str = ""

    @property
    def reductions(self):
        return {"m": "last", "change": "last"}

    def plan(self, model):
        if model.groups:
            raise UnsupportedError("halving knows no groups")
        return ToyTables(model.biases, model.dense())

    def program(self, backend):
        xp = backend.xp

        def step(key, tables, state):
            m = 0.5 * state[0] + 0.25 + 0.25 * xp.tanh(0.5 * tables.biases[:, None])
            if self.fault == "draws":
                m = m * backend.uniform(key, m.shape)
            return m, xp.max(xp.abs(m - state[0]), axis=0)

        return Program(
            init=lambda key, tables, start: (start, start[0]),
            step=step,
            observe=lambda tables, state: {"m": state[0], "change": state[1]},
        )

    def finished(self, trace):
        if self.fault == "never ends":
            return False
        return trace.samples > 9 if self.fault == "ends early" else trace.total("change").max() < 1e-9

    def estimate(self, model, tables, trace):
        far = 0.3 / trace.samples if self.fault == "ends early" else 0.0
        marginals = trace.total("m").mean(axis=-1) * (1 - far)
        is_sure = self.fault in ("says so at once", "never ends") or self.finished(trace)
        return Estimate(marginals=marginals, doubts=() if is_sure else ("not converged",))


def namespace(**members):
    return SimpleNamespace(**{**{name: getattr(np, name) for name in dir(np)}, **members})


def clip_normal(low, high):
    return lambda self, key, shape: NumpyBackend.normal(self, key, shape).clip(low, high)


def fold_in(change):
    return lambda self, key, index: NumpyBackend.fold_in(self, key, change(index))


def key(change):
    return lambda self, seed: NumpyBackend.key(self, change(seed))


def update(give_up):
    def changed(self, array, index, values, *, donate=False):
        return NumpyBackend.update(self, array, index, values, donate=give_up(array, donate))

    return changed


def fori_loop(first, last):
    return lambda self, lower, upper, body, carry: NumpyBackend.fori_loop(self, first(lower), last(upper), body, carry)


# A backend's name to the members that differ from NumPy's.
FAULTS = {
    "eager": {"requires": ("wave",)},
    "narrow": {"xp": SimpleNamespace(**{name: getattr(np, name) for name in dir(np) if name != "logaddexp"})},
    "flagless": {"xp": namespace(isnan=lambda x: np.isnan(x).astype(x.dtype))},
    "wide": {"xp": namespace(full=lambda shape, value, dtype: np.full(shape, value))},
    "tiled": {"xp": namespace(matmul=lambda x, y: np.matmul(x[..., :64], y[..., :64, :]))},
    "onesided": {"xp": namespace(searchsorted=lambda x, y, side="left": np.searchsorted(x, y))},
    "overflowing": {"xp": namespace(logaddexp=lambda x, y: np.log(np.exp(x) + np.exp(y)))},
    "blind": {"xp": namespace(max=lambda x, axis=None, keepdims=False: np.nanmax(x, axis=axis, keepdims=keepdims))},
    "blinking": {"xp": namespace(maximum=np.fmax)},
    "mild": {"xp": namespace(exp=lambda x: np.exp(np.clip(x, -50, 50)))},
    "sideways": {"xp": namespace(sum=lambda x, axis=None, **how: np.sum(x, axis=0 if axis == -1 else axis, **how))},
    "loopy": {"provides": NumpyBackend.provides | {"loop"}},
    "late": {"fori_loop": fori_loop(lambda lower: 0, lambda upper: upper)},
    "short": {"fori_loop": fori_loop(lambda lower: lower, lambda upper: min(int(upper), 4096))},
    "once": {
        "while_loop": lambda self, condition, body, carry: NumpyBackend.while_loop(self, condition, body, body(carry))
    },
    "mutating": {"update": update(lambda array, donate: True)},
    "counting": {
        "update": lambda self, array, index, values, *, donate=False: NumpyBackend.update(
            self, array, -1 - index if isinstance(index, int) and index < 0 else index, values, donate=donate
        )
    },
    "inline": {"update": update(lambda array, donate: donate or array.ndim == 1)},
    "folding": {"fold_in": fold_in(lambda index: index // 2)},
    "forgetful": {"fold_in": fold_in(lambda index: index % 128)},
    "floating": {"key": key(lambda seed: int(float(seed)))},
    "decimal": {"key": key(lambda seed: seed % 1_000_000)},
    "coarse": {
        "uniform": lambda self, key, shape: (
            np.floor(NumpyBackend.uniform(self, key, shape) * 2**12).astype(self.real) / 2**12
        )
    },
    "cyclic": {
        "uniform": lambda self, key, shape: np.resize(NumpyBackend.uniform(self, key, shape).ravel()[: 1 << 16], shape)
    },
    "floored": {
        "uniform": lambda self, key, shape: np.maximum(NumpyBackend.uniform(self, key, shape), self.real.type(2e-5))
    },
    "shifted": {"normal": lambda self, key, shape: NumpyBackend.normal(self, key, shape) * self.real.type(1.05)},
    "clipped": {"normal": clip_normal(-3, 3)},
    "tame": {"normal": clip_normal(-4.2, 4.2)},
}
for _name, _members in FAULTS.items():
    globals()[_name.capitalize()] = type(
        _name.capitalize(), (NumpyBackend,), {"__module__": __name__, "name": _name, **_members}
    )


class Anywhere(NumpyBackend):
    name = "anywhere"

    def __init__(self, *, precision="float64", device="cpu"):
        super().__init__(precision=precision)


class Single(NumpyBackend):
    name = "single"

    def __init__(self, *, precision="float64", device="cpu"):
        super().__init__(precision=precision, device=device)
        self.real = np.dtype("float32")


class Driverless(NumpyBackend):
    name = "driverless"
    provides = NumpyBackend.provides | {"gpu"}

    def __init__(self, *, precision="float64", device="cpu"):
        if device == "gpu":
            raise RuntimeError("no driver")
        super().__init__(precision=precision, device=device)


class Sharing(NumpyBackend):
    name = "sharing"

    def update(self, array, index, values, *, donate=False):
        updated = super().update(array, index, values, donate=donate)
        if donate:
            values += 1
        return updated


class Steep(NumpyBackend):
    name = "steep"
    provides = NumpyBackend.provides | {"grad"}

    def grad(self, function):
        def gradient(pair, *rest):
            def slope(array, at, move):
                ends = []
                for side in (1e-5, -1e-5):
                    moved = array.copy()
                    moved[at] += side
                    ends.append(function(move(moved), *rest))
                return 1.001 * (ends[0] - ends[1]) / 2e-5

            first = [slope(pair.first, at, lambda x: pair._replace(first=x)) for at in np.ndindex(pair.first.shape)]
            second = [slope(pair.second, at, lambda x: pair._replace(second=x)) for at in np.ndindex(pair.second.shape)]
            return type(pair)(np.reshape(first, pair.first.shape), np.reshape(second, pair.second.shape))

        return gradient


class Shuffled(NumpyBackend):
    name = "shuffled"

    def take(self, array, indices):
        taken = super().take(array, indices)
        return taken.T if np.ndim(indices) == 2 else taken


class Mirrored(NumpyBackend):
    name = "mirrored"

    def normal(self, key, shape):
        x = np.ravel(super().normal(key, shape)).copy()
        x[(x.size + 1) // 2 :] = -x[: x.size // 2][::-1]
        return x.reshape(shape)


class Inexact(NumpyBackend):
    name = "inexact"

    def to_device(self, array):
        array = np.asarray(array)
        return super().to_device(array.astype(np.float32).astype(array.dtype) if array.dtype.kind == "i" else array)

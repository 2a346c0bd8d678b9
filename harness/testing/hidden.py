"""Checks that a run depends on its model, seed and start alone, and that settings stay frozen after burn-in."""

from __future__ import annotations

import ast
import copy
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.inference import registry
from spinbench.inference.engine import ProgramEngine
from spinbench.inference.runner import run
from spinbench.inference.starts import random_start
from spinbench.testing.check import OF_PAIRS, require
from spinbench.testing.laws.cases import law
from spinbench.testing.pair import Pair
from spinbench.testing.trial import FEW_CHAINS, SEED, Batches, Trial, advance, flat

STEPS = [3, 1, 4]
ROUNDING = 1e-5
"""Of sums in another order, in either precision; another draw differs by a state."""
SEEDS = (0, 1, 2, 2**16 + 1, 10**6 + 1, 10**9 + 1, 2**31, 2**32, 2**32 + 1, 2**53, 2**53 + 1, 2**60 + 1, 2**63 - 1)


@OF_PAIRS.add("hidden state")
def state(pair: Pair) -> None:
    """Two runs on one engine leave each other alone; so do a state and its copy, a look and the chains."""
    at = pair.trial_of_many_states()
    alone = {seed: _after(at, seed) for seed in (SEED, SEED + 1)}
    both = {seed: at.begin(FEW_CHAINS, seed, 8) for seed in alone}
    seen: dict[int, Batches] = {seed: [] for seed in alone}
    for steps in STEPS:
        for seed in both:
            both[seed], statistics = at.engine.advance(both[seed], steps)
            seen[seed].append((steps, {name: np.array(array) for name, array in statistics.items()}))
    for seed, batches in seen.items():
        require(
            _same(alone[seed], batches),
            "two runs that take turns on one engine give other draws than each alone: it keeps state between calls",
        )
    require(
        _same(alone[SEED], _after(at, SEED)),
        "a second run with the same seed gives other draws: the engine keeps state",
    )
    looked = at.begin(FEW_CHAINS, SEED, 8)
    at.engine.look(looked)
    require(_same(alone[SEED], advance(at.engine, looked, STEPS)[1]), "after a look the chains give other draws")
    one = at.begin(FEW_CHAINS, SEED, 8)
    try:
        two = copy.deepcopy(one)
    except TypeError:  # states need not be such that they can be copied
        return
    advance(at.engine, one, STEPS)
    require(
        _same(alone[SEED], advance(at.engine, two, STEPS)[1]),
        "a copied state gives other draws than the state: part of it is kept elsewhere",
    )


@OF_PAIRS.add("another process")
def process(pair: Pair) -> None:
    """A run in a process of its own gives the same numbers: nothing is salted, none depends on what ran before."""
    method, accepted = pair.method, pair.accepted()
    case = "dense" if "dense" in accepted else accepted[-1]
    what = {"case": case, "method": method.name, "settings": asdict(method), "backend": pair.backend}  # type: ignore[call-overload]
    what["options"] = {**pair.options, "budget": 8, "chains": 4, "seed": SEED}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "12"}
    command = [sys.executable, "-P", "-c", f"from spinbench.testing.hidden import told; print(told({what!r}))"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    require(done.returncode == 0, f"a run in a fresh process fails: {done.stderr[-300:]}")
    one, two = (np.array(ast.literal_eval(text)) for text in (told(what), done.stdout.splitlines()[-1]))
    close = one.shape == two.shape and np.allclose(one, two, rtol=1e-9, atol=1e-12)
    require(close, "a run with the same seed gives other numbers in another process")


def told(what: dict[str, Any]) -> str:
    """What a short run says of a small model."""
    method = registry.make_method(what["method"], what["settings"])
    found = run(law(what["case"]).model, method, what["backend"], **what["options"])
    marginals = flat(found.marginals)
    return repr([found.log_z or 0.0, *([] if marginals is None else marginals.tolist())])


@OF_PAIRS.add("start and tables stay")
def start(pair: Pair) -> None:
    """The start, the model and the tables are read, not written; in which order its numbers lie does not matter."""
    at, around = pair.trial_of_many_states(), _around()
    states = random_start(at.model, FEW_CHAINS, SEED)
    before, tables = states.tobytes(), [(leaf, leaf.tobytes()) for leaf in arrays(at.tables)]
    state = at.engine.init(SEED, states)
    if at.method.anytime:
        state = at.engine.adapt(at.engine.warm(state, 2), True)
    at.engine.advance(state, 2 if at.method.anytime else 1)
    require(states.tobytes() == before, "the start that was given is written into; copy it")
    kept = all(leaf.tobytes() == content for leaf, content in tables)
    require(kept, "the tables of plan are written into; copy them")
    steps = [2] if at.method.anytime else [1]
    one, two = (
        advance(at.engine, at.engine.init(SEED, order(states)), steps)[1]
        for order in (np.ascontiguousarray, np.asfortranarray)
    )
    # sums in another order round differently
    close = _same(one, two, ROUNDING)
    require(close, "a start whose columns lie one after another in memory (Fortran order) gives other draws")
    at.method.plan(at.model)
    for (what, earlier), (_, later) in zip(around, _around(), strict=True):
        require(earlier == later, f"{what} is not what it was before: nothing but a run's own state may change")


def _around() -> list[tuple[str, object]]:
    """What belongs to the whole process."""
    name, words, *rest = np.random.get_state(legacy=True)  # noqa: NPY002 - of others
    return [
        ("NumPy's global random state", (name, np.asarray(words).tobytes(), *rest)),
        ("the working directory", os.getcwd()),
        ("the environment", dict(os.environ)),
        ("NumPy's handling of errors", np.geterr()),
    ]


@OF_PAIRS.add("seeds", "sampler")
def seeds(pair: Pair) -> None:
    """Seeds give different draws, also where they agree in 32 bits, or in their last digits."""
    at = pair.trial_of_many_states()
    states = np.zeros((at.model.num_variables, FEW_CHAINS), dtype=np.int8)
    seen: dict[bytes, int] = {}
    for seed in SEEDS:
        state = at.engine.adapt(at.engine.warm(at.engine.init(seed, states), 2), True)
        batch = at.engine.advance(state, 3)[1]
        code = b"".join(np.asarray(batch[name]).tobytes() for name in sorted(batch))
        other = seen.setdefault(code, seed)
        require(other == seed, f"seeds {other} and {seed} give the same draws: not all 64 bits of a seed count")


@OF_PAIRS.add("frozen settings", "sampler")
def frozen(pair: Pair) -> None:
    """After adapt(last=True), numbers of the state that all chains share do not change: settings are frozen.

    Of a program's state these are the arrays without an axis of chains; of a kernel's, single numbers.
    """
    at = pair.trial_of_many_states()
    state = at.begin(FEW_CHAINS, SEED, 16)
    program = isinstance(at.engine, ProgramEngine)
    kind = registry.backend_class(pair.backend)
    to_host = kind(precision=pair.precision, device=pair.device).to_host
    before = [leaf.copy() for leaf in _shared(state, program, to_host)]
    state, _ = at.engine.advance(state, 8)
    after = _shared(state, program, to_host)
    require(len(before) == len(after), "the state has another structure after a step")
    for old, new in zip(before, after, strict=True):
        require(old.shape == new.shape, f"an array of the state has shape {old.shape}, and {new.shape} after a step")
        moved = ~np.isclose(old, new, rtol=0, atol=0, equal_nan=True)
        require(
            not moved.any(),
            f"after adapt(last=True), a number of the state that all chains share goes on to change, from "
            f"{old[moved][:1]} to {new[moved][:1]}: adaptation is not frozen, and samples have another law",
        )


def _after(at: Trial, seed: int) -> Batches:
    return advance(at.engine, at.begin(FEW_CHAINS, seed, 8), STEPS)[1]


def _same(one: Batches, two: Batches, allowed: float = 0.0) -> bool:
    pairs = zip(one, two, strict=True)
    return all(
        np.allclose(a[name], b[name], rtol=allowed, atol=allowed, equal_nan=True)
        for (_, a), (_, b) in pairs
        for name in a
    )


def _shared(state: Any, program: bool, to_host: Callable[[Any], Any]) -> list[npt.NDArray[Any]]:
    """Floating-point numbers of a state that all chains share."""
    found = [leaf for leaf in arrays(state, to_host) if leaf.dtype.kind == "f"]
    return [leaf for leaf in found if (FEW_CHAINS not in leaf.shape if program else leaf.ndim == 0)]


def arrays(tree: Any, to_host: Callable[[Any], Any] = np.asarray) -> Iterator[npt.NDArray[Any]]:
    """The arrays and numbers in tuples, lists, dictionaries and objects, on the host."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, tuple | list):
        for node in tree:
            yield from arrays(node, to_host)
    elif isinstance(tree, float | np.ndarray | np.generic):
        yield np.asarray(tree)
    elif hasattr(tree, "__array__"):
        yield to_host(tree)
    elif hasattr(tree, "__dict__"):
        yield from arrays(list(vars(tree).values()), to_host)

"""Checks that a run depends on its model, seed and start alone, and that settings stay frozen after burn-in."""

from __future__ import annotations

import ast
import copy
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any
from unittest import SkipTest

import numpy as np
import psutil

from spinbench.api.estimate import verdict
from spinbench.errors import SpinbenchError
from spinbench.inference import engine, initial_states, registry, runner
from spinbench.testing import answers
from spinbench.testing.check import PAIR_CHECKS, CheckError, require, run_with_deadline
from spinbench.testing.laws.cases import law
from spinbench.testing.pair import Pair
from spinbench.testing.trial import FEW_CHAINS, SEED, Batches, Trial, advance_batches, flatten_values, step_count

if TYPE_CHECKING:
    from spinbench.api import Array

STEPS = [3, 1, 4]
# Chains and batches of a long run, steps of each, and CPU seconds after which it is left out.
LATE_CHAINS, LATE_BATCHES, LATE_STEPS, LATE_SECONDS = 512, 17, 128, 6.0
# MiB that a process grows in each quarter of it, where one number of a chain in each step is 2.
MIN_GROWTH = 1.5
# Of an array of a kernel's state that holds settings.
MAX_SETTINGS = 8
# Rounding of sums in another order, in either precision; different draws differ by a state.
ROUNDING = 1e-5
SEEDS = (0, 1, 2, 2**16 + 1, 10**6 + 1, 10**9 + 1, 2**31, 2**32, 2**32 + 1, 2**53, 2**53 + 1, 2**60 + 1, 2**63 - 1)


@PAIR_CHECKS.add("hidden state")
def check_hidden_state(pair: Pair) -> None:
    """Two runs on one engine leave each other alone; so do a state and its copy, a look and the chains."""
    at = pair.trial_of_many_states()
    alone = {seed: _run_batches(at, seed) for seed in (SEED, SEED + 1)}
    both = {seed: at.start_chains(FEW_CHAINS, seed, 8) for seed in alone}
    statistics_by_seed: dict[int, Batches] = {seed: [] for seed in alone}
    for steps in STEPS:
        for seed in both:
            both[seed], statistics = at.engine.advance(both[seed], steps)
            statistics_by_seed[seed].append((steps, {name: np.array(array) for name, array in statistics.items()}))
    for seed, batches in statistics_by_seed.items():
        require(
            _are_batches_equal(alone[seed], batches),
            "two runs that take turns on one engine give other draws than each alone: it keeps state between calls",
        )
    require(
        _are_batches_equal(alone[SEED], _run_batches(at, SEED)),
        "a second run with the same seed gives other draws: the engine keeps state",
    )
    looked = at.start_chains(FEW_CHAINS, SEED, 8)
    at.engine.look(looked)
    require(
        _are_batches_equal(alone[SEED], advance_batches(at.engine, looked, STEPS)[1]),
        "after a look the chains give other draws",
    )
    original = at.start_chains(FEW_CHAINS, SEED, 8)
    try:
        copied = copy.deepcopy(original)
    except TypeError:
        # States need not support copying.
        return
    advance_batches(at.engine, original, STEPS)
    require(
        _are_batches_equal(alone[SEED], advance_batches(at.engine, copied, STEPS)[1]),
        "a copied state gives other draws than the state: part of it is kept elsewhere",
    )


@PAIR_CHECKS.add("another process")
def check_other_process(pair: Pair) -> None:
    """A run in a process of its own gives the same numbers: nothing is salted, none depends on what ran before."""
    method, accepted = pair.method, pair.list_accepted_cases()
    case = "dense" if "dense" in accepted else accepted[-1]
    run_description = {"case": case, "method": method.name, "settings": asdict(method), "backend": pair.backend}  # type: ignore[call-overload]
    run_description["options"] = {**pair.options, "budget": 8, "chains": 4, "seed": SEED}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "12"}
    command = [
        sys.executable,
        "-P",
        "-c",
        f"from spinbench.testing.state_leaks import repr_of_short_run; print(repr_of_short_run({run_description!r}))",
    ]
    completed = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    require(completed.returncode == 0, f"a run in a fresh process fails: {completed.stderr[-300:]}")
    here_numbers, there_numbers = (
        np.array(ast.literal_eval(text))
        for text in (repr_of_short_run(run_description), completed.stdout.splitlines()[-1])
    )
    close = here_numbers.shape == there_numbers.shape and np.allclose(
        here_numbers, there_numbers, rtol=1e-9, atol=1e-12
    )
    require(close, "a run with the same seed gives other numbers in another process")


def repr_of_short_run(run_description: dict[str, Any]) -> str:
    """Text of the answer of a short run on a small model."""
    method = registry.make_method(run_description["method"], run_description["settings"])
    result = runner.run(
        law(run_description["case"]).model, method, run_description["backend"], **run_description["options"]
    )
    marginals = flatten_values(result.marginals)
    numbers = [result.log_z or 0.0]
    if marginals is not None:
        numbers += marginals.tolist()
    return repr(numbers)


@PAIR_CHECKS.add("start and tables stay")
def check_inputs_unchanged(pair: Pair) -> None:
    """The start, the model and the tables are read, not written; in which order its numbers lie does not matter."""
    around, at = _read_global_state(), pair.trial_of_many_states()
    states = initial_states.random_start(at.model, FEW_CHAINS, SEED)
    before, tables = states.tobytes(), [(leaf, leaf.tobytes()) for leaf in tree_arrays(at.tables)]
    state = at.engine.init(SEED, states)
    if at.method.kind != "direct":
        state = at.engine.adapt(at.engine.warm(state, 2), True)
    steps = step_count(at.method, 2)
    at.estimate(advance_batches(at.engine, state, [steps])[1])
    at.method.plan(at.model)
    for quantity, earlier in around.items():
        same = _read_global_state()[quantity] == earlier
        require(same, f"{quantity} is not what it was before: a run changes its own state alone")
    require(states.tobytes() == before, "the start that was given is written into; copy it")
    tables_unchanged = all(leaf.tobytes() == content for leaf, content in tables)
    require(tables_unchanged, "the tables of plan are written into; copy them")
    from_c_order, from_fortran_order = (
        advance_batches(at.engine, at.engine.init(SEED, order(states)), [steps])[1]
        for order in (np.ascontiguousarray, np.asfortranarray)
    )
    # sums in another order round differently
    close = _are_batches_equal(from_c_order, from_fortran_order, ROUNDING)
    require(close, "a start whose columns lie one after another in memory (Fortran order) gives other draws")


def _read_global_state() -> dict[str, object]:
    name, generator_state, *rest = np.random.get_state(legacy=True)  # noqa: NPY002 - of others
    return {
        "NumPy's global random state": (name, np.asarray(generator_state).tobytes(), *rest),
        "the environment": dict(os.environ),
    }


@PAIR_CHECKS.add("late steps", "sampler", "compiles_once")
def check_late_steps(pair: Pair) -> None:
    """After a thousand steps chains have the law that they had, and the process the memory.

    Raises:
        SkipTest: steps are slow.
    """
    run_with_deadline(LATE_SECONDS, f"a run of {LATE_BATCHES * LATE_STEPS} steps", lambda: _check_late_steps(pair))


def _check_late_steps(pair: Pair) -> None:
    at = pair.trial("dense")
    state, batches, memory, batch_bytes = at.start_chains(LATE_CHAINS, SEED), [], [], 0
    for turn in range(LATE_BATCHES):
        try:
            state, statistics = at.engine.advance(state, LATE_STEPS)
        except SkipTest:
            raise
        except Exception as error:
            raise CheckError(
                f"after {turn * LATE_STEPS} steps advance raises {type(error).__name__}: {error}"
            ) from error
        batches.append((LATE_STEPS, {name: np.array(array) for name, array in statistics.items()}))
        batch_bytes += sum(array.nbytes for array in batches[-1][1].values())
        memory.append((psutil.Process().memory_info().rss - batch_bytes) / 2**20)
    late = batches[LATE_BATCHES // 2 :]
    first = len(late) * LATE_STEPS
    require(
        _changes(batches[-2:]) or not _changes(batches[:2]),
        f"after {(LATE_BATCHES - 2) * LATE_STEPS} steps all chains stand still",
    )
    try:
        estimate = replace(at.estimate(late), log_z=None, log_z_estimates={})
        if verdict(estimate) == "ok":
            floor, exact = answers.FLOOR[pair.precision], at.law.marginals
            answers.compare_answer(estimate, 0.0, exact, floor, coupled=True, chains=LATE_CHAINS, law=at.law)
    except (CheckError, SpinbenchError) as error:
        raise CheckError(f"after {first} steps: {error}{_describe_changing_settings(pair, at)}") from None
    growth = np.diff(memory[:: LATE_BATCHES // 4])[1:]
    require(
        growth.min() < MIN_GROWTH,
        f"the process grows by {growth.sum():.0f} MiB in {first} steps of {LATE_CHAINS} chains, the last of "
        f"{2 * first}: something of each step is kept",
    )


def _changes(batches: Batches) -> bool:
    """Whether some statistic of two batches is not the same."""
    (_, before), (_, after) = batches
    return any((before[name] != after[name]).any() for name in before)


def _describe_changing_settings(pair: Pair, at: Trial) -> str:
    """That each chain has a number in the state which goes on to change and is no state: a setting, or an energy."""
    state = at.start_chains(FEW_CHAINS, SEED, 16)
    to_host = registry.backend_class(pair.backend)(precision=pair.precision, device=pair.device).to_host
    before = [leaf.copy() for leaf in tree_arrays(state, to_host)]
    after = list(tree_arrays(at.engine.advance(state, 8)[0], to_host))
    for old, new in zip(before, after, strict=False):
        if old.shape == (FEW_CHAINS,) and (old != new).any() and (old != np.rint(old)).all():
            return "; the state holds a number of each chain that goes on to change: does it adapt after burn-in?"
    return ""


@PAIR_CHECKS.add("seeds", "sampler")
def check_seeds_differ(pair: Pair) -> None:
    """Seeds give different draws, also where they agree in 32 bits, or in their last digits."""
    at = pair.trial_of_many_states()
    states = np.zeros((at.model.num_variables, FEW_CHAINS), dtype=np.int8)
    seeds_by_draws: dict[bytes, int] = {}
    for seed in SEEDS:
        state = at.engine.adapt(at.engine.warm(at.engine.init(seed, states), 2), True)
        batch = at.engine.advance(state, 3)[1]
        code = b"".join(np.asarray(batch[name]).tobytes() for name in sorted(batch))
        other = seeds_by_draws.setdefault(code, seed)
        require(other == seed, f"seeds {other} and {seed} give the same draws: not all 64 bits of a seed count")


@PAIR_CHECKS.add("frozen settings", "sampler")
def check_adaptation_is_frozen(pair: Pair) -> None:
    """After adapt(last=True), numbers of the state that all chains share do not change: settings are frozen.

    Of a program's state these are the arrays without an axis of chains; of a kernel's, arrays of a few numbers.
    """
    at = pair.trial_of_many_states()
    state = at.start_chains(FEW_CHAINS, SEED, 16)
    program = isinstance(at.engine, engine.ProgramEngine)
    kind = registry.backend_class(pair.backend)
    to_host = kind(precision=pair.precision, device=pair.device).to_host
    before = [leaf.copy() for leaf in _common_floats(state, program, to_host)]
    state, _ = at.engine.advance(state, 8)
    after = _common_floats(state, program, to_host)
    require(len(before) == len(after), "the state has another structure after a step")
    for old, new in zip(before, after, strict=True):
        require(old.shape == new.shape, f"an array of the state has shape {old.shape}, and {new.shape} after a step")
        moved = ~np.isclose(old, new, rtol=0, atol=0, equal_nan=True)
        require(
            not moved.any(),
            f"after adapt(last=True), a number of the state that all chains share goes on to change, from "
            f"{old[moved][:1]} to {new[moved][:1]}: adaptation is not frozen, and samples have another law",
        )


def _run_batches(at: Trial, seed: int) -> Batches:
    return advance_batches(at.engine, at.start_chains(FEW_CHAINS, seed, 8), STEPS)[1]


def _are_batches_equal(first: Batches, second: Batches, allowed: float = 0.0) -> bool:
    pairs = zip(first, second, strict=True)
    return all(
        np.allclose(a[name], b[name], rtol=allowed, atol=allowed, equal_nan=True)
        for (_, a), (_, b) in pairs
        for name in a
    )


def _common_floats(state: object, program: bool, to_host: Callable[[Array], np.ndarray]) -> list[np.ndarray]:
    """Floating-point numbers of a state that all chains share."""
    floats = [leaf for leaf in tree_arrays(state, to_host) if leaf.dtype.kind == "f"]
    if program:
        return [leaf for leaf in floats if FEW_CHAINS not in leaf.shape]
    return [leaf for leaf in floats if leaf.size <= MAX_SETTINGS]


def tree_arrays(tree: object, to_host: Callable[[Array], np.ndarray] = np.asarray) -> Iterator[np.ndarray]:
    """The arrays and numbers in tuples, lists, dictionaries and objects, on the host."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, tuple | list):
        for node in tree:
            yield from tree_arrays(node, to_host)
    elif isinstance(tree, float | np.ndarray | np.generic):
        yield np.asarray(tree)
    elif str(getattr(tree, "dtype", "")).startswith("key<"):
        # JAX keys do not convert to numbers.
        return
    elif hasattr(tree, "__array__"):
        yield to_host(tree)
    elif hasattr(tree, "__dict__"):
        yield from tree_arrays(list(vars(tree).values()), to_host)

"""Starts of chains: random states, a user's own, or another method's draws, chosen by their weights."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from spinbench.api import Engine, Method, State, Trace
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.foundation import plugins
from spinbench.inference import registry
from spinbench.inference.preflight import WarmUp
from spinbench.mathematics.graphs.feasible_starts import feasible_starts
from spinbench.mathematics.graphs.starts import grow
from spinbench.models import FactorGraph, Model, PairwiseModel
from spinbench.models.groups import merge_groups

if TYPE_CHECKING:
    from spinbench.api.host_arrays import Draws

# Number of draws to choose from, and chains that draw in parallel.
DRAWS, DRAWN = 5120, 64


def random_start(model: Model, chains: int, seed: int, possible: bool = True) -> np.ndarray:
    """Random states (N, C), int8 or, where that is too short, int32; one random member of each 1-of-K group.

    They are uniform, but where a factor graph has zeros: then they have positive weight, if that is asked for.

    Raises:
        UnsupportedError: states of positive weight were not found.
    """
    if possible and isinstance(model, FactorGraph) and model.has_zeros:
        return feasible_starts(model, chains, seed).astype(_signed_dtype(model))
    rng = np.random.default_rng(np.random.SeedSequence((seed, 0x5354415254)))
    if not model.all_binary:
        ends = np.array(model.cardinalities)[:, None]
        return rng.integers(0, ends, size=(model.num_variables, chains)).astype(_signed_dtype(model))
    start = rng.integers(0, 2, size=(model.num_variables, chains), dtype=np.int8)
    for group in getattr(model, "groups", ()):
        start[list(group)] = 0
        start[np.array(group)[rng.integers(len(group), size=chains)], np.arange(chains)] = 1
    return start


def spread_starts(model: Model, chains: int, seed: int, sampler: bool) -> np.ndarray:
    """As `random_start`; where chains remember their starts, every other one is ordered, so that this shows."""
    start = random_start(model, chains, seed, sampler)
    if sampler and chains > 1 and not (isinstance(model, FactorGraph) and model.has_zeros):
        grow(model, start[:, 1::2], np.random.default_rng(np.random.SeedSequence((seed, 0x47524F57))))
    return start


def check_start(start: np.ndarray, model: Model) -> np.ndarray:
    """A user's states, int8 or int32.

    Raises:
        SpinbenchError: they are no states of the model.
    """
    states = np.asarray(start)
    max_states = max(model.cardinalities, default=2)
    fits = (
        states.ndim == 2 and len(states) == model.num_variables and states.shape[1] > 0 and states.dtype.kind in "biuf"
    )
    if (
        not fits
        or not (np.isin(states, np.arange(max_states)) & (states < np.array(model.cardinalities)[:, None])).all()
    ):
        values = {2: "0 and 1"}.get(max_states, "the variables' states")
        raise SpinbenchError(
            f"start has shape {states.shape}; an array ({model.num_variables}, chains) of {values} is needed"
        )
    return states.astype(_signed_dtype(model))


def _signed_dtype(model: Model) -> type[np.signedinteger[Any]]:
    """int8, or where a variable has too many states for it, int32."""
    return np.int8 if max(model.cardinalities, default=2) < 128 else np.int32


def merge_start(start: np.ndarray, model: Model, method_model: Model) -> np.ndarray:
    """A user's states of a model, in terms of what its 1-of-K groups became.

    Args:
        start: (N, C), not checked yet.
        model: as the user gave it.
        method_model: as the method takes it.

    Raises:
        SpinbenchError: they are no states of the model.
    """
    if model is method_model or not isinstance(model, PairwiseModel) or not model.groups:
        return start
    states = check_start(start, model)
    if any((states[list(group)].sum(axis=0) != 1).any() for group in model.groups):
        raise SpinbenchError(f"start breaks a 1-of-K group of {model.name}, of which exactly one variable is 1")
    alone = merge_groups(dataclasses.replace(model, origin=None))
    assert alone.origin is not None
    return alone.origin.lower(states.T).T


def how(model: Model, start: str) -> dict[str, Any]:
    """What the run that makes the draws is asked: samples, no seconds, so that the same seed gives the same starts."""
    profile = registry.method_class(start).profile
    steps = profile.starts
    backend = next((name for name in steps if registry.support(start, name).runs), next(iter(steps)))
    burn_in = max(steps[backend] // model.num_variables, 1)
    asked = {"backend": backend, "chains": DRAWN, "budget": DRAWS // DRAWN, "burn_in": burn_in}
    return {**profile.start_settings, **asked}


def resample_draws(draws: Draws | None, model: Model, chains: int, seed: int, who: str) -> np.ndarray:
    """(N, C) integers: different draws of a method, the more likely the more they weigh.

    None is taken twice while there are others: where few draws have all the weight, chains that began alike would agree
    with each other, and nothing else.

    Args:
        draws: (N, S) states and (S,) log weights or None, as in `Estimate.draws`.
        model: that they are of.
        chains: C.
        seed: of the choice.
        who: gave them.

    Raises:
        UnsupportedError: none has positive weight.
    """
    states, weights = draws or (np.zeros((model.num_variables, 0)), None)
    logs = np.zeros(np.shape(states)[1]) if weights is None else np.asarray(weights)
    possible = np.flatnonzero(np.isfinite(logs))
    if not len(possible):
        raise UnsupportedError(f"start={who!r}: none of its draws of {model.name} has positive weight; leave start out")
    rng = np.random.default_rng(np.random.SeedSequence((seed, 0x524553414D50)))
    # Gumbel's trick without replacement: the largest of log w + noise are draws by weight, none of them twice.
    ranks = np.argsort(-(logs[possible] + rng.gumbel(size=len(possible))))
    return np.asarray(states)[:, possible[ranks[np.arange(chains) % len(ranks)]]]


def warm_up_then_restart(warm_up: WarmUp, start: np.ndarray, seed: int) -> WarmUp:
    """The same, but chains that climbed from independent draws on the way, or were probes, are where they were again.

    Args:
        warm_up: as `drive` takes it.
        start: (N, C) states.
        seed: of the run.
    """

    def run(engine: Engine, state: State, steps: int, trace: Trace) -> tuple[State, int]:
        state, done = warm_up(engine, state, steps, trace)
        trace.probes = {name: sent._replace(began=False) for name, sent in trace.probes.items()}
        if trace.climb is not None or trace.probes:
            return engine.init(seed, start), done
        return state, done

    return run


def check_name(start: str, method: Method) -> None:
    """Whether draws of such a method may be starts of the other.

    Raises:
        SpinbenchError: there are none.
        UnsupportedError: they would change nothing.
    """
    if start not in registry.names("methods") or not registry.method_class(start).profile.starts:
        classes = plugins.load_all("methods", registry.method_class)[0]
        allowed = " or ".join(repr(name) for name, cls in classes.items() if cls.profile.starts)
        raise SpinbenchError(f"start={start!r} was given; {allowed}, or an array of states, is needed")
    if method.kind in ("draws", "direct"):
        raise UnsupportedError(f"{method.name} starts from no states, so that start={start!r} would change nothing")

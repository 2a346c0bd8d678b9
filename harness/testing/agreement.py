"""Checks of iterations by what they agree with, exact answers of trees and the method's other programs; of answers
with variables or chains in another order; and of precisions, which do not agree to the last digit."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from unittest import SkipTest

import numpy as np

from spinbench.api import Precision
from spinbench.inference import registry
from spinbench.inference.kernels import Wish
from spinbench.inference.result import Result
from spinbench.inference.runner import run
from spinbench.models import Model, PairwiseModel
from spinbench.testing.check import PAIR_CHECKS, REFUSALS, require, skip
from spinbench.testing.laws import wrong_laws
from spinbench.testing.laws.cases import Law
from spinbench.testing.laws.large_models import SETTLED, find_solved_model
from spinbench.testing.pair import Pair
from spinbench.testing.trial import FEW_CHAINS, SEED, advance_batches, flatten_values, step_count

TREES = ("tree", "long tree", "tree of factors", "tree with zeros")
# Models on which most iterations have a single fixed point.
COMPARED = ("dense", "sparse", "101 variables", "one to nine states", "zeros", "wide tables")
STEPS = 2000
CHAINS = 3
# Of a sampler, whose order is changed; relative differences of sums in another order.
ORDERED_CHAINS, ROUNDING = 33, 1e-6
# Of models to whose log weights a constant is added, pairwise and not; a number that single precision holds.
CONSTANT_MODELS, CONSTANT_STEPS, CONSTANT = ("dense", "three states"), 64, 3.5
# Bits behind the point of numbers that both precisions hold; further numbers that are enough to tell these by.
FEW_BITS, MIN_DIGITS = 20, 8
# Tolerance at which iterations end, relative for log Z.
END_TOLERANCE = 1e-9
# Largest difference that this tolerance leaves.
MAX_DIFFERENCE = 1e-6
# Largest difference between marginals of a model in two orders of its variables, on which bounds may depend.
MAX_ORDER_DIFFERENCE = 0.02


@PAIR_CHECKS.add("accuracy, {}", "iteration", "method.conformance.exact_on_trees", over=TREES)
def check_exact_on_tree(pair: Pair, name: str) -> None:
    """An iteration with `exact_on_trees` gives exact marginals and log Z on a tree."""
    exact = find_solved_model(name)
    result = _run_method(pair, exact.model, pair.backend, pair.wish)
    require(result.status == "ok", f"on a tree it says {result.status}, where its answer is said to be exact")
    marginals, cause = flatten_values(result.marginals), ""
    if isinstance(exact, Law) and marginals is not None and np.abs(marginals - exact.marginals).max() > MAX_DIFFERENCE:
        allowed = np.full(len(marginals), MAX_DIFFERENCE)
        cause = wrong_laws.describe_cause(exact.model, exact.states, marginals, exact.marginals, allowed)
    _require_close(result, exact.log_z, exact.marginals, f"the exact one, where a tree's is said to be exact{cause}")


@PAIR_CHECKS.add(
    "kernel and program", "iteration", "native", over=lambda pair: filter(None, [find_other_implementation(pair)])
)
def check_same_answers(pair: Pair, backend: str, wish: Wish, tolerance: float = END_TOLERANCE) -> None:
    """A kernel gives the answers of the method's program, or of its other kernel, wherever both have ended.

    Args:
        pair: of the kernel.
        backend, wish: where the other runs.
        tolerance: changes of a bound at which they end, relative: marginals may be its root apart at that distance.
    """
    num_compared = 0
    for name in COMPARED:
        model = find_solved_model(name).model
        try:
            kernel_result = _run_method(pair, model, pair.backend, pair.wish)
            other_result = _run_method(pair, model, backend, wish)
        except SkipTest:
            continue
        if kernel_result.status == other_result.status == "ok":
            other_answer = f"the {'program' if wish.tier else 'kernel'}'s on {backend}, on {name!r}"
            marginals = flatten_values(other_result.marginals)
            _require_close(kernel_result, other_result.log_z, marginals, other_answer, tolerance)
            num_compared += 1
    if not num_compared:
        skip(f"there is no model of the suite on which it ends here and on {backend}")


@PAIR_CHECKS.add("order of variables", "iteration")
def check_variable_order(pair: Pair) -> None:
    """Converged answers do not depend on which variable has the last number, even if it converges early."""
    model = find_solved_model(SETTLED).model
    assert isinstance(model, PairwiseModel)
    forward, backward = (
        _run_method(pair, ordered_model, pair.backend, pair.wish)
        for ordered_model in (model, _reverse_variables(model))
    )
    if forward.status != "ok" or backward.status != "ok":
        skip(f"in one order it says {forward.status}, in the other {backward.status}")
    if forward.marginals is None or backward.marginals is None:
        skip("it has no marginals")
    off = float(np.abs(np.hstack(forward.marginals) - np.hstack(backward.marginals)[::-1]).max())
    require(
        off <= MAX_ORDER_DIFFERENCE,
        f"marginals of one model differ by up to {off:.2g} between two orders of its variables, and both answers are "
        "said to have ended: does the end look at all variables?",
    )


@PAIR_CHECKS.add("order of chains", "sampler")
def check_chain_order(pair: Pair) -> None:
    """An answer does not depend on which chain is the last: each counts once."""
    sample = pair.sample("dense")
    width = ORDERED_CHAINS
    order = np.random.default_rng(SEED).permutation(width).tolist()
    forward, shuffled = (pair.estimate(sample, chains) for chains in (list(range(width)), order))
    for quantity in ("marginals", "marginals_se", "log_z", "log_z_se"):
        value, other = getattr(forward, quantity), getattr(shuffled, quantity)
        require(
            value is None or np.allclose(value, other, rtol=ROUNDING, atol=ROUNDING**2, equal_nan=True),
            f"{quantity} of {width} chains depends on their order: some chain does not count, or counts twice",
        )


@PAIR_CHECKS.add("constant of the model")
def check_model_constant(pair: Pair) -> None:
    """What is added to all log weights is added to log Z, be it an estimate or a bound, and changes nothing else."""
    for name in CONSTANT_MODELS:
        model = find_solved_model(name).model
        shifted = replace(model, log_constant=model.log_constant + CONSTANT)
        with suppress(SkipTest):
            first, second = (_run_method(pair, m, pair.backend, pair.wish, CONSTANT_STEPS) for m in (model, shifted))
            if first.log_z is None or second.log_z is None or np.isinf(first.log_z):
                continue
            moved = second.log_z - first.log_z
            require(
                abs(moved - CONSTANT) <= ROUNDING * max(1.0, abs(first.log_z)),
                f"with {CONSTANT:g} added to the constant of {name!r}, log Z grows by {moved:.6g}: the model's "
                "log_constant is not counted once",
            )


def _reverse_variables(model: PairwiseModel) -> PairwiseModel:
    edges, last = model.edges[::-1], model.num_variables - 1
    return PairwiseModel.from_edges(model.biases[::-1], last - edges, model.couplings[::-1], name=f"{model.name}, back")


@PAIR_CHECKS.add("last digits", "anytime", "other_precisions")
def check_precisions_differ(pair: Pair) -> None:
    """float64 has more digits than float32, and samplers differ: the same digits mean the same arithmetic."""
    statistics = {}
    precisions: tuple[Precision, ...] = ("float32", "float64")
    for precision in precisions:
        at = pair.trial_of_many_states(precision)
        state = at.engine.init(SEED, np.zeros((at.model.num_variables, FEW_CHAINS), dtype=np.int8))
        steps = step_count(pair.method, 3)
        statistics[precision] = advance_batches(at.engine, state, [steps])[1][0][1]
    is_compared = {
        name: np.isfinite(a) & (np.abs(a) > 2.0**-FEW_BITS) & (a * 2**FEW_BITS != np.rint(a * 2**FEW_BITS))
        for name, a in statistics["float64"].items()
        if a.dtype.kind == "f"
    }
    single, double = ({n: statistics[p][n].astype(np.float64) for n in is_compared} for p in precisions)
    if not any(where.any() for where in is_compared.values()):
        skip("it reports numbers of few digits alone, which do not show the precision")
    for name, where in is_compared.items():
        if where.sum() < MIN_DIGITS:
            continue
        is_float32 = (double[name][where] == double[name][where].astype(np.float32)).all()
        require(not is_float32, f"every {name} of float64 has the digits of float32: float64 is computed in float32")
    same = all(
        np.array_equal(single[n][where].astype(np.float32), double[n][where].astype(np.float32))
        for n, where in is_compared.items()
        if single[n].shape == where.shape
    )
    # a bound may be computed in double precision whatever is asked for
    require(not same or not pair.sampler, "float32 and float64 give the same digits: float32 is computed in float64")


def _run_method(pair: Pair, model: Model, backend: str, wish: Wish, steps: int = STEPS) -> Result:
    """Of a whole run.

    Raises:
        SkipTest: the method refuses the model, or the backend the settings.
    """
    device = pair.device if backend == pair.backend else "cpu"
    where = Pair(pair.method, backend, pair.precision, pair.chains, wish, device)
    options = {**where.options, "budget": steps, "chains": CHAINS, "seed": SEED, "simplify": False}
    try:
        return run(model, pair.method, backend, **options)
    except REFUSALS as refusal:
        raise SkipTest(f"refused: {refusal}") from refusal


def find_other_implementation(pair: Pair) -> tuple[str, Wish] | None:
    """Another implementation of the method: its program, here or on NumPy, else NumPy's kernel."""
    for backend, wish in ((pair.backend, Wish("generic")), ("numpy", Wish("generic")), ("numpy", Wish())):
        tier = registry.support(pair.method.name, backend, wish).tier
        if tier in ("native", "generic") and (backend, tier) != (pair.backend, "native"):
            return backend, wish
    return None


def _require_close(
    result: Result,
    log_z: float | None,
    marginals: np.ndarray | None,
    other_answer: str,
    tolerance: float = END_TOLERANCE,
) -> None:
    if result.log_z is not None and log_z is not None:
        off = result.log_z - log_z
        require(abs(off) <= MAX_DIFFERENCE * max(1.0, abs(log_z)), f"log Z differs by {off:.3g} from {other_answer}")
    own_marginals = flatten_values(result.marginals)
    if own_marginals is not None and marginals is not None:
        off = float(np.abs(own_marginals - marginals).max(initial=0))
        # near the optimum of a bound, marginals are off by the root of the bound's error
        allowed = MAX_DIFFERENCE
        if result.log_z_kind in ("lower", "upper") and result.log_z is not None:
            allowed = max(allowed, (tolerance * max(1.0, abs(result.log_z))) ** 0.5)
        require(off <= allowed, f"marginals differ by up to {off:.3g} from {other_answer}")

"""Checks of iterations by what they agree with, exact answers of trees and the method's other programs; and of
precisions, which do not agree to the last digit."""

from __future__ import annotations

from unittest import SkipTest

import numpy as np

from spinbench.api import Precision
from spinbench.inference import registry
from spinbench.inference.kernels import Wish
from spinbench.inference.result import Result
from spinbench.inference.runner import run
from spinbench.models import Model, PairwiseModel
from spinbench.testing.check import OF_PAIRS, REFUSALS, require, skip
from spinbench.testing.laws.known import SETTLED, known
from spinbench.testing.pair import Pair
from spinbench.testing.trial import FEW_CHAINS, SEED, advance, flat

TREES = ("tree", "long tree", "tree of factors")
COMPARED = ("dense", "sparse", "101 variables", "one to nine states", "zeros", "wide tables")
"""Models on which most iterations have one fixed point."""
STEPS = 2000
CHAINS = 3
ENDED = 1e-9
"""Changes at which iterations end, relative for log Z."""
CLOSE = 1e-6
"""What they leave."""
ORDERED = 0.02
"""Between marginals of a model whose variables stand in two orders, which bounds may heed."""


@OF_PAIRS.add("accuracy, {}", "iteration", "method.exact_on_trees", over=TREES)
def tree(pair: Pair, name: str) -> None:
    """Exact on a tree, as `Method.exact_on_trees` says."""
    exact = known(name)
    found = _answer(pair, exact.model, pair.backend, pair.wish)
    require(found.status == "ok", f"on a tree it says {found.status}, where its answer is said to be exact")
    _close(found, exact.log_z, exact.marginals, "the exact one, where a tree's is said to be exact")


@OF_PAIRS.add("kernel and program", "iteration", "native", over=lambda pair: filter(None, [other(pair)]))
def alike(pair: Pair, backend: str, wish: Wish, ended: float = ENDED) -> None:
    """A kernel gives the answers of the method's program, or of its other kernel, wherever both have ended.

    Args:
        pair: of the kernel.
        backend, wish: where the other runs.
        ended: changes of a bound at which they end, relative: as far from its optimum marginals may be its root apart.
    """
    seen = 0
    for name in COMPARED:
        model = known(name).model
        try:
            one, two = _answer(pair, model, pair.backend, pair.wish), _answer(pair, model, backend, wish)
        except SkipTest:
            continue
        if one.status == two.status == "ok":
            what = f"the {'program' if wish.tier else 'kernel'}'s on {backend}, on {name!r}"
            _close(one, two.log_z, flat(two.marginals), what, ended)
            seen += 1
    if not seen:
        skip(f"there is no model of the suite on which it ends here and on {backend}")


@OF_PAIRS.add("order of variables", "iteration")
def order(pair: Pair) -> None:
    """Answers that are said to have ended do not depend on which variable is the last, and settles early."""
    model = known(SETTLED).model
    assert isinstance(model, PairwiseModel)
    one, two = (_answer(pair, given, pair.backend, pair.wish) for given in (model, _backwards(model)))
    if one.status != "ok" or two.status != "ok":
        skip(f"in one order it says {one.status}, in the other {two.status}")
    if one.marginals is None or two.marginals is None:
        skip("it has no marginals")
    off = float(np.abs(np.hstack(one.marginals) - np.hstack(two.marginals)[::-1]).max())
    require(
        off <= ORDERED,
        f"marginals of one model differ by up to {off:.2g} between two orders of its variables, and both answers are "
        "said to have ended: does the end look at all variables?",
    )


def _backwards(model: PairwiseModel) -> PairwiseModel:
    edges, last = model.edges[::-1], model.num_variables - 1
    return PairwiseModel.from_edges(model.biases[::-1], last - edges, model.couplings[::-1], name=f"{model.name}, back")


@OF_PAIRS.add("last digits", "sampler", "other_precisions")
def digits(pair: Pair) -> None:
    """float32 and float64 must differ where numbers are not whole: the same digits mean the same arithmetic."""
    seen = {}
    precisions: tuple[Precision, ...] = ("float32", "float64")
    for precision in precisions:
        at = pair.trial_of_many_states(precision)
        state = at.engine.init(SEED, np.zeros((at.model.num_variables, FEW_CHAINS), dtype=np.int8))
        steps = 3 if pair.method.anytime else 1
        seen[precision] = advance(at.engine, state, [steps])[1][0][1]
    broken = {name: np.isfinite(a) & (a != np.rint(a)) for name, a in seen["float64"].items() if a.dtype.kind == "f"}
    if not any(where.any() for where in broken.values()):
        skip("it reports whole numbers alone, which do not show the precision")
    same = all(
        np.array_equal(seen["float32"][name][where].astype(np.float32), seen["float64"][name][where].astype(np.float32))
        for name, where in broken.items()
        if seen["float32"][name].shape == where.shape
    )
    short = all(
        np.array_equal(seen["float64"][name][where], seen["float64"][name][where].astype(np.float32))
        for name, where in broken.items()
    )
    kind = "float64 is computed in float32" if short else "float32 is computed in float64"
    require(not same, f"float32 and float64 give the same digits: {kind}")


def _answer(pair: Pair, model: Model, backend: str, wish: Wish) -> Result:
    """Of a whole run.

    Raises:
        SkipTest: the method refuses the model, or the backend the settings.
    """
    device = pair.device if backend == pair.backend else "cpu"
    where = Pair(pair.method, backend, pair.precision, pair.chains, wish, device)
    options = {**where.options, "budget": STEPS, "chains": CHAINS, "seed": SEED, "simplify": False}
    try:
        return run(model, pair.method, backend, **options)
    except REFUSALS as refusal:
        raise SkipTest(f"refused: {refusal}") from refusal


def other(pair: Pair) -> tuple[str, Wish] | None:
    """Where else the method runs: its program, here or on NumPy, else NumPy's kernel."""
    for backend, wish in ((pair.backend, Wish("generic")), ("numpy", Wish("generic")), ("numpy", Wish())):
        tier = registry.support(pair.method.name, backend, wish).tier
        if tier in ("native", "generic") and (backend, tier) != (pair.backend, "native"):
            return backend, wish
    return None


def _close(found: Result, log_z: float | None, marginals: np.ndarray | None, what: str, ended: float = ENDED) -> None:
    if found.log_z is not None and log_z is not None:
        off = found.log_z - log_z
        require(abs(off) <= CLOSE * max(1.0, abs(log_z)), f"log Z differs by {off:.3g} from {what}")
    own = flat(found.marginals)
    if own is not None and marginals is not None:
        off = float(np.abs(own - marginals).max(initial=0))
        # about the optimum of a bound, marginals move by the root of what the bound does
        flat_top = found.log_z_kind in ("lower", "upper") and found.log_z is not None
        allowed = max(CLOSE, (ended * max(1.0, abs(found.log_z or 0.0))) ** 0.5) if flat_top else CLOSE
        require(off <= allowed, f"marginals differ by up to {off:.3g} from {what}")

"""Joint probabilities and draws: what they must be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spinbench.api import Estimate
from spinbench.api.estimate import verdict
from spinbench.errors import InvalidResultError, SpinbenchError
from spinbench.models import FactorGraph, Model, PairwiseModel

if TYPE_CHECKING:
    from spinbench.api.host_arrays import Draws

FloatArray = npt.NDArray[np.float64]

# Tolerance in probability of the sums and marginals of joint probabilities: float32 sums of many terms are as far off.
ROUNDING = 1e-3
# Further tolerance: this many error bounds of the marginals.
BOUNDS = 2.0


def with_pairs(estimate: Estimate, model: Model, who: str) -> Estimate:
    """An estimate whose pairs are found, and checked, where the method gave a function.

    Raises:
        InvalidResultError: as `check_joint`, or the method's function raised.
    """
    if not callable(estimate.pairs):
        return estimate
    try:
        pairs = estimate.pairs()
    except SpinbenchError:
        raise
    except Exception as error:
        text = " ".join(str(error).split())
        raise InvalidResultError(f"{who} failed to find pairs: {type(error).__name__}: {text}") from error
    whole = copy_pairs(replace(estimate, pairs=pairs))
    check_joint(whole, model, who)
    return whole


def check_joint(estimate: Estimate, model: Model, who: str) -> None:
    """Pairs, unless they are yet to be found, draws, and the sums of marginals over 1-of-K groups.

    Where the estimate is believed, pairs have to agree with its marginals: within Fréchet's bounds, max(0, p + q - 1)
    and min(p, q), for edges; in the sums over all variables but one for factors.

    Raises:
        InvalidResultError: another shape or type, a probability beside [0, 1], sums that are not 1, as those of a
            kernel that does not know groups, a contradiction, errors below 0; states that the model does not have, log
            weights that are NaN or infinite.
    """
    if not isinstance(model, FactorGraph) and model.groups and estimate.marginals_se is not None:
        _check_groups(estimate.marginals, model, who)
    if estimate.pairs is not None and not callable(estimate.pairs):
        if isinstance(model, FactorGraph):
            sizes = [factor.log_table.size for factor in model.factors]
        else:
            sizes = [len(model.edges)]
        pairs = _tables(estimate.pairs, sizes, f"{who} gave pairs")
        for table in pairs:
            _refuse(table[~((table >= -ROUNDING) & (table <= 1 + ROUNDING))], f"{who} gave pairs", "0 to 1")
        if isinstance(model, FactorGraph):
            sums = np.array([table.sum() for table in pairs])
            _refuse(sums[abs(sums - 1) > ROUNDING], f"{who} gave pairs whose sums are not 1", "1")
        if verdict(estimate) == "ok" and estimate.marginals is not None:
            _check_agreement(estimate, model, pairs, who)
    if estimate.draws is not None:
        _check_draws(estimate.draws, model, who)


def copy_draws(draws: Draws) -> Draws:
    """Copies: the method may write into them again."""
    states, weights = draws
    return np.array(states), None if weights is None else np.array(weights, dtype=np.float64)


def copy_pairs(estimate: Estimate) -> Estimate:
    """With copies of pairs: the method may write into them again."""
    pairs = estimate.pairs
    if isinstance(pairs, list | tuple):
        pairs = [np.array(table) for table in pairs]
    elif pairs is not None and not callable(pairs):
        pairs = np.array(pairs)
    return replace(estimate, pairs=pairs)


def _tables(values: object, sizes: list[int], who: str) -> list[FloatArray]:
    """A flat table a factor, or one array for all edges."""
    parts = list(values) if isinstance(values, list | tuple) else [values]
    if len(parts) != len(sizes):
        raise InvalidResultError(f"{who} of {len(parts)} factors; the model has {len(sizes)}")
    flat = []
    for table, size in zip(parts, sizes, strict=True):
        array = np.asarray(table)
        if array.dtype.kind not in "biuf":
            raise InvalidResultError(f"{who} of type {array.dtype}; real numbers are needed")
        if array.shape != (size,):
            raise InvalidResultError(f"{who} of shape {array.shape}; {(size,)} is needed")
        flat.append(array.astype(np.float64))
    return flat


def _check_groups(marginals: npt.ArrayLike, model: PairwiseModel, who: str) -> None:
    """Of a sampler: what is iterated, without standard errors, may approximate groups by independent variables."""
    p = np.asarray(marginals)
    sums = np.array([p[list(group)].sum() for group in model.groups])
    complaint = f"{who} gave marginals of a 1-of-K group whose sum is not 1"
    # Entries of NaN stand for marginals that an exact answer leaves open; their comparisons are false.
    _refuse(sums[abs(sums - 1) > ROUNDING], complaint, "1")


def _check_agreement(estimate: Estimate, model: Model, pairs: list[FloatArray], who: str) -> None:
    p = [np.atleast_1d(each) for each in estimate.marginals]
    error_bounds = estimate.marginals_error_bound
    bounds = [np.zeros(1)] * len(p)
    if error_bounds is not None:
        bounds = list(map(np.atleast_1d, error_bounds))
    if not isinstance(model, FactorGraph):
        ends = np.concatenate(p)[model.edges]
        spread = BOUNDS * np.concatenate(bounds)[model.edges].sum(-1)
        slack = ROUNDING + np.nan_to_num(spread)
        beside = (pairs[0] > ends.min(axis=1) + slack) | (pairs[0] < ends.sum(axis=1) - 1 - slack)
        _refuse(pairs[0][beside], f"{who} gave pairs", "what its marginals leave room for")
        return
    for factor, table in zip(model.factors, pairs, strict=True):
        shaped = table.reshape(factor.log_table.shape)
        for axis, v in enumerate(factor.scope):
            sums = shaped.sum(axis=tuple(k for k in range(shaped.ndim) if k != axis))
            # Binary variables have only the probability of state 1.
            pair_sums = sums[-p[v].size :]
            off = abs(pair_sums - p[v]) > ROUNDING + BOUNDS * np.nan_to_num(bounds[v])
            _refuse(pair_sums[off], f"{who} gave pairs whose sums are not its marginals", "their value")


def _check_draws(draws: object, model: Model, who: str) -> None:
    if not isinstance(draws, tuple) or len(draws) != 2:
        raise InvalidResultError(f"{who} gave draws of type {type(draws).__name__}; (states, log weights) are needed")
    n = len(model.cardinalities)
    try:
        states = np.asarray(draws[0])
    except ValueError:
        raise InvalidResultError(f"{who} gave draws that are no array; ({n}, S) integers are needed") from None
    if states.ndim != 2 or len(states) != n or states.dtype.kind not in "iu":
        raise InvalidResultError(
            f"{who} gave draws of shape {states.shape} and type {states.dtype}; ({n}, S) integers are needed"
        )
    wrong = (states < 0) | (states >= np.array(model.cardinalities)[:, None])
    _refuse(states[wrong], f"{who} gave draws", "a state of its variable")
    if draws[1] is None:
        return
    weights = np.asarray(draws[1])
    if weights.shape != states.shape[1:] or weights.dtype.kind not in "iuf":
        raise InvalidResultError(f"{who} gave log weights of shape {weights.shape}; {states.shape[1:]} is needed")
    _refuse(weights[~(weights < np.inf)], f"{who} gave log weights of draws", "a number below infinity")


def _refuse(wrong: np.ndarray, who: str, needed: str) -> None:
    if wrong.size:
        raise InvalidResultError(f"{who}: {wrong.flat[0]:g}, where {needed} is allowed")

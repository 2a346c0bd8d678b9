"""What an estimate must be before it becomes a Result: no number of a plugin that cannot be one gets out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import numpy.typing as npt

from spinbench.api import Estimate, LogZKind, Precision
from spinbench.api.bounds import CERTAIN, GRADES, Bound, Side, stated
from spinbench.api.estimate import is_doubted
from spinbench.errors import InvalidResultError
from spinbench.inference.checks import evidence, joint_validity
from spinbench.mathematics import all_states, rounding
from spinbench.models import Model

if TYPE_CHECKING:
    from spinbench.api.host_arrays import PerVariable

# Largest excess of float32 probabilities beyond 0 and 1.
ROUNDING = 1e-5
# Largest deviation from 1 of the sum of a variable's probabilities.
SUM_ROUNDING = 1e-3
# Relative tolerance by which a lower bound may exceed an upper one.
BOUND_ROUNDING = 1e-9
# Larger integers do not convert to float64.
_MOST = 2**1023


def check(estimate: Estimate, model: Model, who: str) -> Estimate:
    """Of a method's estimate for the model that it computed with.

    Args:
        estimate: as the method gives it.
        model: what `estimate` was asked about.
        who: method and backend, for the message.

    Returns:
        All of it but pairs, in arrays that no method writes into, float64 but for draws. Probabilities are clipped to
        0 … 1, and error bounds no less than standard errors.

    Raises:
        InvalidResultError: marginals beside [0, 1], NaN (but where log Z is exact, and a marginal out of reach),
            infinite, complex or of another shape; errors or effective sample sizes below 0; bounds that contradict each
            other or what log Z is; a log Z that is no number, or whose kind there is not; diagnostics that are no
            numbers; doubts that are no tuple of texts; pairs or draws that cannot be (`joint_validity`); no Estimate at
            all.
    """
    if not isinstance(estimate, Estimate):
        raise InvalidResultError(f"{who} gave {type(estimate).__name__}; an Estimate is needed")
    binary = model.all_binary
    sizes = [1] * model.num_variables if binary else list(model.cardinalities)
    arrays: dict[str, Any] = {}
    if estimate.marginals is not None:
        p = _flat(estimate.marginals, sizes, binary, f"{who} gave marginals")
        solved = estimate.log_z_kind == "exact" and estimate.log_z is not None
        # Marginals that an exact answer leaves open as too expensive.
        beyond = np.isnan(p) & solved
        _refuse(~((p >= -ROUNDING) & (p <= 1 + ROUNDING) | beyond), p, f"{who} gave marginals", "0 to 1", sizes)
        if not binary:
            total = np.add.reduceat(p, np.cumsum([0, *sizes[:-1]]))
            off = np.abs(total - 1) > SUM_ROUNDING
            _refuse(off, total, f"{who} gave marginals whose sums are not 1", "1", [1] * len(sizes))
        arrays["marginals"] = np.clip(p, 0.0, 1.0)
    named = {
        "marginals_se": "errors of marginals",
        "marginals_error_bound": "error bounds of marginals",
        "ess": "effective sample sizes",
        "r_hat": "R-hat",
    }
    for name, label in named.items():
        values = getattr(estimate, name)
        if values is not None:
            arrays[name] = flat = _flat(values, sizes, binary, f"{who} gave {label}")
            _refuse(flat < 0, flat, f"{who} gave {label}", "0 or more, or NaN,", sizes)
    _check_log_z(estimate, who)
    _check_bounds(estimate, who)
    _check_remarks(estimate, who)
    joint_validity.check_joint(estimate, model, who)
    if "marginals_se" in arrays:
        arrays["marginals_error_bound"] = np.maximum(arrays["marginals_se"], arrays["marginals_error_bound"])
    if not binary:
        arrays = {name: np.split(flat, np.cumsum(sizes)[:-1]) for name, flat in arrays.items()}
    return _copy(estimate, arrays)


def _copy(estimate: Estimate, arrays: Mapping[str, Any]) -> Estimate:
    """With these arrays, Python's own numbers, and draws that no method writes into."""
    log_z_error_bound = estimate.log_z_error_bound
    if estimate.log_z_se is not None:
        log_z_error_bound = max(estimate.log_z_se, log_z_error_bound or 0.0)
    numbers = {"log_z": estimate.log_z, "log_z_se": estimate.log_z_se, "log_z_error_bound": log_z_error_bound}
    diagnostics = {}
    for name, value in estimate.diagnostics.items():
        diagnostics[name] = int(value) if isinstance(value, int | np.integer) else float(value)
    return replace(
        estimate,
        doubts=tuple(" ".join(doubt.split()) for doubt in estimate.doubts),
        **{name: float(number) for name, number in numbers.items() if number is not None},  # type: ignore[arg-type]
        log_z_estimates={name: (float(z), float(error)) for name, (z, error) in estimate.log_z_estimates.items()},
        diagnostics=diagnostics,
        bounds=tuple(replace(b, value=float(b.value), delta=float(b.delta)) for b in estimate.bounds),
        draws=estimate.draws and joint_validity.copy_draws(estimate.draws),
        pairs=None,
        **arrays,
    )


def flag_infinite_errors(estimate: Estimate) -> Estimate:
    """With the doubts that numbers raise which nobody knows: infinite R-hat, errors that are NaN or infinite."""
    if estimate.marginals is None or is_doubted(estimate, "marginals"):
        return estimate
    if estimate.r_hat is not None and np.isinf(all_states.errors_of_all_states(estimate.r_hat)).any():
        return replace(estimate, doubts=(*estimate.doubts, "marginals not mixed"))
    errors = estimate.marginals_error_bound
    if errors is not None and not np.isfinite(all_states.errors_of_all_states(errors)).all():
        return replace(estimate, doubts=(*estimate.doubts, "marginals unresolved"))
    return estimate


def widen_errors(precision: Precision, estimate: Estimate, model: Model) -> Estimate:
    """Errors no finer than the arithmetic that the numbers were made with."""

    changes: dict[str, Any] = {}
    for name in ("marginals_se", "marginals_error_bound"):
        if getattr(estimate, name) is not None:
            changes[name] = rounding.add_rounding(getattr(estimate, name), estimate.marginals, model, precision)
    for name in ("log_z_se", "log_z_error_bound"):
        if estimate.log_z is not None and getattr(estimate, name) is not None:
            changes[name] = rounding.add_rounding_to_log_z(getattr(estimate, name), estimate.log_z, model, precision)
    if estimate.log_z_estimates:
        changes["log_z_estimates"] = {
            name: (value, rounding.add_rounding_to_log_z(error, value, model, precision))
            for name, (value, error) in estimate.log_z_estimates.items()
        }
    if estimate.bounds:
        changes["bounds"] = tuple(_widen_bound(bound, model, precision) for bound in estimate.bounds)
    # An exact answer has none of them, and a small model's takes not much longer than a copy.
    return replace(estimate, **changes) if changes else estimate


def _widen_bound(bound: Bound, model: Model, precision: Precision) -> Bound:
    """A probable one is of means of weights that chains computed; a certified one has its rounding off already."""
    if bound.grade != "probable" or not np.isfinite(bound.value):
        return bound
    off = rounding.add_rounding_to_log_z(0.0, bound.value, model, precision)
    return replace(bound, value=bound.value + evidence.OUTWARD[bound.side] * off)


def _check_bounds(estimate: Estimate, who: str) -> None:
    if not isinstance(estimate.bounds, Sequence):
        raise InvalidResultError(f"{who} gave {estimate.bounds!r} as bounds; a tuple of Bounds is needed")
    if not estimate.bounds:  # what log Z is contradicts nothing
        return
    for bound in estimate.bounds:
        if not isinstance(bound, Bound) or bound.side not in get_args(Side) or bound.grade not in GRADES:
            raise InvalidResultError(f"{who} gave {bound!r} as a bound; a Bound of a known side and grade is needed")
        is_valid = _is_real(bound.value) and (
            np.isfinite(bound.value) or bound.value == evidence.OUTWARD[bound.side] * np.inf
        )
        if not is_valid or not _is_real(bound.delta) or not 0 <= bound.delta < 1 or not isinstance(bound.by, str):
            raise InvalidResultError(f"{who} gave {bound!r}; a number of nats and 0 <= delta < 1 are needed")
    certain = [b for b in stated(estimate.log_z, estimate.log_z_kind, estimate.bounds, who) if b.grade in CERTAIN]
    low, high = evidence.bracket_of(certain)
    if low > high + BOUND_ROUNDING * max(abs(low), 1.0):
        raise InvalidResultError(f"{who} gave a lower bound of {low!r} above its upper bound of {high!r}")


def _check_remarks(estimate: Estimate, who: str) -> None:
    diagnostics, doubts = estimate.diagnostics, estimate.doubts
    if not isinstance(diagnostics, Mapping) or not all(
        isinstance(name, str) and _is_real(x) for name, x in diagnostics.items()
    ):
        raise InvalidResultError(f"{who} gave {diagnostics!r} as diagnostics; numbers by name are needed")
    if not isinstance(doubts, tuple | list) or not all(isinstance(doubt, str) and doubt for doubt in doubts):
        raise InvalidResultError(f"{who} gave {doubts!r} as doubts; a tuple of texts is needed")


def _check_log_z(estimate: Estimate, who: str) -> None:
    if estimate.log_z_kind not in (kinds := get_args(LogZKind)):
        raise InvalidResultError(f"{who} gave a log Z of kind {estimate.log_z_kind!r}; {', '.join(kinds)} are allowed")
    # Infinite bounds are valid but say nothing.
    allowed = {"lower": -np.inf, "upper": np.inf}.get(estimate.log_z_kind)
    named = estimate.log_z_estimates
    if not isinstance(named, Mapping) or not all(
        isinstance(pair, Sequence) and len(pair) == 2 for pair in named.values()
    ):
        raise InvalidResultError(
            f"{who} gave {named!r} as estimates of log Z; a value and its error by name are needed"
        )
    if any(part is None for pair in named.values() for part in pair):
        raise InvalidResultError(f"{who} gave {dict(named)!r} as estimates of log Z; a value and its error are needed")
    bound = estimate.log_z, estimate.log_z_error_bound
    for value, error in [(estimate.log_z, estimate.log_z_se), bound, *named.values()]:
        if value is not None and not (_is_real(value) and (math.isfinite(value) or value == allowed)):
            raise InvalidResultError(f"{who} gave log Z = {value!r}; a finite number is needed, or None")
        if error is not None and not (_is_real(error) and error >= 0):
            raise InvalidResultError(
                f"{who} gave {error!r} as the error of log Z; a number from 0 on is needed, infinite if it is not known"
            )


def _is_real(value: object) -> bool:
    """Whether it is a number that a float can hold."""
    if isinstance(value, int | float):
        return isinstance(value, float) or abs(value) < _MOST
    return isinstance(value, np.integer | np.floating) and bool(np.isinf(float(value)) == np.isinf(value))


def _flat(values: PerVariable, sizes: Sequence[int], binary: bool, who: str) -> joint_validity.FloatArray:
    """One after another; of the shape that the model asks for."""
    parts: Iterable[Any]
    if binary:
        parts, needed, plural, place = [values], [(len(sizes),)], "", ""
    else:
        parts, needed, plural, place = values, [(k,) for k in sizes], "s", " for variable {}"
    try:
        arrays = [np.asarray(part) for part in parts]
    # Not a list, or a list of lists of different lengths.
    except (TypeError, ValueError):
        raise InvalidResultError(f"{who} of type {type(values).__name__} that are no array{plural}") from None
    shapes = [array.shape for array in arrays]
    if shapes != needed:
        differs = next((i for i, (a, b) in enumerate(zip(shapes, needed, strict=False)) if a != b), None)
        if differs is None:
            raise InvalidResultError(f"{who} of {len(shapes)} variables; the model has {len(sizes)}")
        at = place.format(differs)
        raise InvalidResultError(f"{who} of shape {shapes[differs]}{at}; {needed[differs]} is needed")
    for source, array in zip(parts, arrays, strict=True):
        if np.ma.is_masked(source):
            raise InvalidResultError(f"{who} of which some are masked; a number for each is needed")
        if array.dtype.kind not in "biuf":
            raise InvalidResultError(f"{who} of type {array.dtype}; real numbers are needed")
    if arrays:
        return np.concatenate([array.astype(np.float64) for array in arrays])
    return np.zeros(0)


def _refuse(
    wrong: npt.NDArray[np.bool_], flat: joint_validity.FloatArray, who: str, needed: str, sizes: Sequence[int]
) -> None:
    if wrong.any():
        place = int(np.argmax(wrong))
        variable = int(np.searchsorted(np.cumsum(sizes), place, side="right"))
        raise InvalidResultError(f"{who}: {flat[place]:g} at variable {variable}, where {needed} is allowed")


def add_flags(estimate: Estimate, flags: Sequence[str]) -> Estimate:
    """The estimate with what checks flag: of marginals in front, of log Z, whose error is not known then, behind.

    Args:
        estimate: that was checked.
        flags: of one check; what the estimate says itself is not said twice.
    """
    if not flags:
        return estimate
    of_log_z = [flag for flag in flags if flag.startswith("log Z") and estimate.log_z is not None]
    marginals = [flag for flag in flags if not flag.startswith("log Z") and not is_doubted(estimate, "marginals")]
    log_z = (flag for flag in of_log_z if not is_doubted(estimate, "log Z"))
    flagged = replace(estimate, doubts=(*marginals, *estimate.doubts, *log_z))
    if of_log_z:
        return replace(flagged, log_z_se=np.inf, log_z_error_bound=np.inf)
    return flagged

"""The list of checks of a backend, a method, a pair or everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

from spinbench.api import Backend, Method
from spinbench.errors import BrokenPluginError, SpinbenchError, UnsupportedError
from spinbench.foundation.names import unknown_name
from spinbench.inference import kernels, registry
from spinbench.inference.kernels import Wish
from spinbench.inference.runner import run
from spinbench.models import FactorGraph
from spinbench.testing import (
    agreement,
    answers,
    burn_in,
    conduct,
    diagnostics,
    hidden,
    kept,
    many,
    shapes,
    streams,
    variants,
)
from spinbench.testing.backends import arrays, declared, members, randomness
from spinbench.testing.check import Check, refuses, require, skip
from spinbench.testing.diagnostics import GROUPS
from spinbench.testing.laws.cases import CASES, couples, potts, triples
from spinbench.testing.laws.known import SIZES, known
from spinbench.testing.pair import CHAINS, Pair

SHORT = ("dense", "strong couplings")
"""Cases for what needs not be tried on all."""
CALIBRATED = ("dense", "sparse")
LOOPED = "one to nine states"
SMALL = (LOOPED, "orders three and four", "zeros", "a state of no weight", "wide tables", "eleven neighbours")
FIRST = {
    *("kernel", "plan", "accuracy, dense", "accuracy, one to nine states", "accuracy, zeros", "17 chains"),
    *("stationarity, dense", "calibration, dense", "calibration, three states", "determinism", "last digits"),
    *("independence of batching", "independence of chains", "end of iterations", "hidden state", "seeds"),
    *("accuracy, 101 variables", "accuracy, dense, float32", "accuracy, a state of no weight"),
}
"""What tells most, where there is not the time for all."""
OF_ARRAYS: dict[str, Callable[[Backend], None]] = {
    "namespace": arrays.namespace,
    "transfer": arrays.transfer,
    "arithmetic": arrays.arithmetic,
    "loops": arrays.loops,
    "open loops": arrays.open_loops,
    "updates": arrays.updates,
    "arrays given up": members.given_up,
    "compensated sums": members.compensated_sums,
    "constructors": members.constructors,
    "gradients": members.gradients,
    "rows": members.rows,
    "window and sigmoid": members.window_and_sigmoid,
    "keys": randomness.keys,
    "keys folded twice": randomness.folded_twice,
    "folding in loops": randomness.folding_in_loops,
    "uniform": partial(randomness.law, which="uniform"),
    "normal": partial(randomness.law, which="normal"),
    "independence": randomness.independence,
}
"""Of a backend that offers arrays, in each of its precisions."""


def checks(
    backend: str | None = None,
    method: str | None = None,
    *,
    chains: int = CHAINS,
    tier: Literal["native", "generic"] | None = None,
    kernel: str | None = None,
    device: str = "cpu",
    **settings: Any,
) -> list[Check]:
    """All checks of a backend, of a method, of both as a pair, or of everything.

    A backend's checks are those of its own and those of every method on it; a method's are those on every backend.

    Args:
        backend, method: names; by default all, but no backend that is another library.
        chains: that most checks run; fewer are quicker, and find less.
        tier, kernel: as of `spinbench.run`: the program beside a kernel, or another distribution's kernel.
        device: "cpu" or "gpu", which leaves backends out that have none.
        settings: of the method.

    Raises:
        UnknownNameError, SpinbenchError: there is no such plugin or setting; settings of no method; a device of no
            backend; chains that are no multiple of 64.
    """
    if settings and method is None:
        raise SpinbenchError(f"the setting {next(iter(settings))} was given without a method; name one")
    for kind, name in (("backends", backend), ("methods", method)):
        if name is not None and name not in registry.names(kind):  # type: ignore[arg-type]
            raise unknown_name(kind[:-1], name, registry.names(kind))  # type: ignore[arg-type]
    backends = [name for name in kernels.own_backends() if _has(name, device)] if backend is None else [backend]
    if not backends:
        raise SpinbenchError(f"device={device} was given, which no backend provides; cpu and gpu are known")
    methods = registry.names("methods") if method is None else [method]
    alone = backends if method is None or backend is not None else []
    found = [check for name in alone for check in backend_checks(name, device)]
    how: dict[str, Any] = {"chains": chains, "tier": tier, "kernel": kernel, "device": device, **settings}
    return found + [check for m in methods for b in backends for check in method_checks(m, b, **how)]


def _has(backend: str, device: str) -> bool:
    try:
        return device == "cpu" or device in registry.backend_class(backend).provides
    except BrokenPluginError:
        return True


def _not_here(backend: str, device: str) -> str:
    """Why a backend finds no such device; empty if it does, or is its own by default, which need not be asked for."""
    kind = registry.backend_class(backend)
    try:
        if device != "cpu" or device != kernels.device_of(kind):
            kind(precision=arrays.precisions(backend)[-1], device=device)
    except UnsupportedError as refusal:
        return str(refusal)
    return ""


def backend_checks(backend: str, device: str = "cpu") -> list[Check]:
    """Checks of a backend alone. One that is not installed, or finds no such device, gives one check, which is skipped
    with the reason."""
    try:
        provides = registry.backend_class(backend).provides
    except BrokenPluginError as error:
        return [Check(backend, "import", partial(_fail, error))]
    if missing := registry.missing(registry.backend_class(backend)):
        return [Check(backend, "construction", partial(skip, f"{', '.join(missing)} not installed here"))]
    if why := _not_here(backend, device):
        return [Check(backend, "construction", partial(skip, why))]
    found: list[tuple[str, Callable[[], None]]] = [
        ("declaration", partial(declared.declaration, backend)),
        ("construction", partial(declared.construction, backend)),
    ]
    if "arrays" not in provides:
        return [Check(backend, name, body) for name, body in found]
    for precision in arrays.precisions(backend):
        make = partial(registry.backend_class(backend), precision=precision, device=device)
        found += [(f"{name} ({precision})", partial(_made, body, make)) for name, body in OF_ARRAYS.items()]
    return [Check(backend, name, body) for name, body in found]


def method_checks(
    method: str,
    backend: str,
    *,
    chains: int = CHAINS,
    tier: Literal["native", "generic"] | None = None,
    kernel: str | None = None,
    device: str = "cpu",
    **settings: Any,
) -> list[Check]:
    """Checks of a method, with these settings, on a backend, those first that tell most; some of them with each value
    that the types of its settings name. A pair that does not run here gives one check: that the refusal has a reason.

    Raises:
        UnknownNameError, SpinbenchError: an unknown plugin or setting; chains that are no multiple of 64.
    """
    if chains < GROUPS or chains % GROUPS:
        raise SpinbenchError(f"chains={chains} was given; a multiple of {GROUPS} is needed")
    subject = f"{method}.{backend}"
    wish = Wish(tier, kernel)
    how = registry.support(method, backend, wish)
    if how.tier == "broken":
        return [Check(subject, "import", partial(_fail, BrokenPluginError(how.reason)))]
    chosen = registry.make_method(method, settings)
    if how.tier == "unavailable":
        return [Check(subject, "accuracy", partial(skip, how.reason))]
    if how.tier == "unsupported":
        return [Check(subject, "refusal", partial(_refusal, chosen, backend, wish))]
    if why := _not_here(backend, device):
        return [Check(subject, "accuracy", partial(skip, why))]
    pair = Pair(chosen, backend, arrays.precisions(backend)[-1], chains, wish, device)
    found = (*_of_all(pair), *_of_kind(pair), *_of_precisions(pair), *_of_settings(pair))
    ordered = sorted(found, key=lambda check: check[0] not in FIRST)
    return [Check(subject, name, body) for name, body in ordered]


def _of_all(pair: Pair) -> Iterator[tuple[str, Callable[[], None]]]:
    tier = registry.support(pair.method.name, pair.backend, pair.wish).tier
    if tier == "native":
        yield "kernel", partial(conduct.kernel, pair)
    yield "plan", partial(conduct.plan, pair)
    for case in CASES:
        yield f"accuracy, {case}", partial(answers.accuracy, pair, case, pair.precision)
    yield "accuracy, three states", partial(answers.graph, pair, potts)
    yield "accuracy, orders three and five", partial(answers.graph, pair, triples)
    for name in SMALL:
        yield f"accuracy, {name}", partial(answers.graph, pair, partial(_model, name))
    yield "accuracy, evidence", partial(answers.graph, pair, partial(_model, LOOPED), evidence={1: 7})
    yield "accuracy, evidence of two states", partial(answers.graph, pair, couples, evidence={0: 1, 4: 0})
    yield "accuracy, all observed", partial(answers.graph, pair, potts, evidence={0: 2, 1: 0, 2: 1})
    for name in SIZES:
        yield f"accuracy, {name}", partial(shapes.size, pair, name)
    if tier == "native":
        yield "accuracy, odd sizes", partial(shapes.odd, pair)
    yield f"accuracy, {many.NAME}", partial(many.variables, pair)
    others = shapes.OTHER_COUNTS if pair.sampler and _compiled_once(pair) else ()
    for count in (*shapes.COUNTS[tier], *others, *([shapes.MANY] if tier == "native" and pair.sampler else [])):
        yield f"{count} chain{'s' * (count > 1)}", partial(shapes.lanes, pair, count)
    if tier == "native" and pair.sampler:
        yield "17 chains, three states", partial(shapes.lanes, pair, 17, potts())
    yield "statistics", partial(conduct.statistics, pair)
    yield "estimates", partial(conduct.estimates, pair)
    yield "determinism", partial(conduct.determinism, pair)
    yield "hidden state", partial(hidden.state, pair)
    yield "another process", partial(hidden.process, pair)
    yield "start and tables stay", partial(hidden.start, pair)


def _of_kind(pair: Pair) -> Iterator[tuple[str, Callable[[], None]]]:
    """Of samplers, and of iterations."""
    if pair.method.anytime:
        yield "independence of batching", partial(conduct.batching, pair)
        if not pair.method.stochastic:
            yield "end of iterations", partial(conduct.ending, pair)
            yield from _of_iterations(pair)
    if pair.sampler:
        for case in SHORT:
            yield f"stationarity, {case}", partial(answers.stationarity, pair, case)
        if _compiled_once(pair):
            yield "stationarity, many chains", partial(answers.crowd, pair)
        for case in CALIBRATED:
            yield f"calibration, {case}", partial(diagnostics.calibration, pair, case)
        yield "calibration, three states", partial(shapes.states, pair, "three states")
        yield "calibration, log Z", partial(shapes.log_z, pair)
        yield "independence of chains", partial(conduct.chains, pair)
        yield "burn-in", partial(burn_in.moves, pair)
        yield "effective sample sizes", partial(diagnostics.sizes, pair)
        yield "R-hat", partial(diagnostics.r_hat, pair)
        yield "R-hat, three states", partial(diagnostics.r_hat_of_states, pair)
        yield "random keys", partial(streams.keys, pair)
        yield "random numbers in time", partial(streams.period, pair)
        yield "random numbers of variables", partial(streams.variables, pair)
        yield "seeds", partial(hidden.seeds, pair)
        yield "frozen settings", partial(hidden.frozen, pair)
        yield "kept states", partial(kept.states, pair)


def _of_iterations(pair: Pair) -> Iterator[tuple[str, Callable[[], None]]]:
    if pair.method.exact_on_trees:
        for name in agreement.TREES:
            yield f"accuracy, {name}", partial(agreement.tree, pair, name)
    yield "order of variables", partial(agreement.order, pair)
    if pair.native and (where := agreement.other(pair)):
        yield "kernel and program", partial(agreement.alike, pair, *where)


def _of_settings(pair: Pair) -> Iterator[tuple[str, Callable[[], None]]]:
    """With each other value that the types of the settings name, and with small numbers."""
    for setting, value in variants.of(pair.method):
        yield f"{setting}={value}", partial(variants.setting, pair, setting, value)
    if _compiled_once(pair):
        yield "settings that count", partial(variants.heeded, pair)
        if pair.sampler and any(variants.in_pairs(pair.method)):
            yield "settings in pairs", partial(variants.together, pair)
        for setting, value in variants.numbers(pair.method):
            yield f"{setting}={value}", partial(variants.number, pair, setting, value)


def _compiled_once(pair: Pair) -> bool:
    """Whether other settings and numbers of chains are compiled no further, as programs are on backends with loops."""
    return pair.native or "loop" not in registry.backend_class(pair.backend).provides


def _of_precisions(pair: Pair) -> Iterator[tuple[str, Callable[[], None]]]:
    """The other precision than the pair's: some cases, or its refusal; and that a sampler's differ."""
    if pair.sampler and len(arrays.precisions(pair.backend)) > 1:
        yield "last digits", partial(agreement.digits, pair)
    for precision in arrays.PRECISIONS.values():
        if precision not in arrays.precisions(pair.backend):
            yield f"refusal, {precision}", partial(conduct.refused_precision, pair, precision)
        elif precision != pair.precision:
            for case in SHORT:
                yield f"accuracy, {case}, {precision}", partial(answers.accuracy, pair, case, precision)
            yield f"accuracy, three states, {precision}", partial(answers.graph, pair, potts, precision)
            if pair.sampler:
                yield f"calibration, dense, {precision}", partial(diagnostics.calibration, pair, "dense", precision)
                yield f"effective sample sizes, {precision}", partial(diagnostics.sizes, pair, precision)
            if pair.sampler and pair.native:
                yield f"17 chains, {precision}", partial(shapes.lanes, pair, 17, None, precision)
                yield f"accuracy, 101 variables, {precision}", partial(shapes.size, pair, "101 variables", precision)


def _model(name: str) -> FactorGraph:
    model = known(name).model
    assert isinstance(model, FactorGraph)
    return model


def _made(body: Callable[[Backend], None], make: Callable[[], Backend]) -> None:
    body(make())


def _fail(error: Exception) -> None:
    raise error


def _refusal(method: Method, backend: str, wish: Wish) -> None:
    """An unsupported pair is refused with the reason that `registry.support` gives, before any work."""
    reason = registry.support(method.name, backend, wish).reason
    require(reason.strip() and "\n" not in reason, f"the reason is {reason!r}; one sentence is needed")
    asked: dict[str, Any] = {"budget": 1, "tier": wish.tier, "kernel": wish.kernel}
    said = refuses(lambda: run(potts(), method, backend, **asked), f"method={method.name}, backend={backend}")
    require(said == reason, f"run says {said!r}, support says {reason!r}")

"""`spinbench.compare`: every pair of methods and backends on one model, and why some did not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spinbench.errors import SpinbenchError
from spinbench.inference import kernels, registry, request, runner
from spinbench.inference.budget import Budget
from spinbench.inference.result import Result
from spinbench.models import Model

Pair = tuple[str, str]


class Comparison(list[Result]):
    """The results, in the order of the pairs.

    Attributes:
        refused: why each of the other pairs (method, backend) gave none.
    """

    def __init__(self, results: Sequence[Result], refused: Mapping[Pair, str]) -> None:
        super().__init__(results)
        self.refused = dict(refused)

    def __repr__(self) -> str:
        lines = [repr(result) for result in self]
        return "\n".join([*lines, *(f"{m} on {b} did not run: {why}" for (m, b), why in self.refused.items())])


def compare(
    model: Model,
    methods: Sequence[str] | None = None,
    backends: Sequence[str] | None = None,
    budget: Budget | int | str = "1 s",
    **options: Any,
) -> Comparison:
    """`run` for every pair of the given (by default all) methods and backends, one after another.

    Args:
        model: any model.
        methods: registered names; None: all.
        backends: registered names; None: all but other libraries, which provide no arrays.
        budget: of each pair.
        options: as for `run`, except settings of methods.

    Returns:
        The results of the pairs that ran, a list, with `refused`: why the others did not.

    Raises:
        UnknownNameError: there is no such method or backend.
        SpinbenchError: a list of names is none, or no pair ran; the message gives the first reason.
    """
    request.check_model(model)
    for option, names in (("methods", methods), ("backends", backends)):
        if isinstance(names, str) or (names is not None and not names):
            raise SpinbenchError(f"{option}={names!r} was given; a list of names is needed, or None for all")
    pairs = [(m, b) for m in methods or registry.names("methods") for b in backends or kernels.own_backends()]
    for method, backend in pairs:
        # All names are checked before anything runs.
        registry.support(method, backend)
    results: list[Result] = []
    refused: dict[Pair, str] = {}
    for method, backend in pairs:
        try:
            results.append(runner.run(model, method, backend, budget, **options))
        except SpinbenchError as why:
            refused[method, backend] = str(why)
        # A bug in one method, perhaps a plugin's, must not discard the results of the others.
        except Exception as why:
            refused[method, backend] = f"{type(why).__name__}: {' '.join(str(why).split())}"
    if not results:
        raise SpinbenchError(f"none of {len(pairs)} pairs ran: {next(iter(refused.values()))}")
    return Comparison(results, refused)

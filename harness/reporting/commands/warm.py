"""`spinbench warm`: compiles kernels before anything is measured."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import product

from rich.progress import track

from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.foundation import deadline, defaults, folders
from spinbench.inference import registry, runner
from spinbench.inference.bracketing.sources import load, load_sources
from spinbench.models import FactorGraph, Model, generators
from spinbench.reporting.progress_display import console, print_line

# Kernels have variants for lattices, few neighbours, many neighbours, dense couplings and factor graphs.
MODELS: Mapping[str, Callable[[], Model]] = {
    "grid": partial(generators.grid, 6, 6, seed=0),
    "degree 3": partial(generators.random_regular, 24, 3, seed=0),
    "degree 8": partial(generators.random_regular, 24, 8, seed=0),
    "dense": partial(generators.sherrington_kirkpatrick, 24, seed=0),
    "three states": lambda: FactorGraph.from_tables((3, 3, 2), [((0, 1), [[1, 2, 1]] * 3), ((1, 2), [[1, 2]] * 3)]),
}
# One chain and many chains have kernels of their own; as many samples as a vector has lanes reach all loops.
CHAINS, SAMPLES = (1, 16), 16


def run(arguments: Namespace) -> int:
    """Run each method on small models of each kind, so that its kernels are compiled and kept, and say where.

    Returns:
        The exit status, 0.

    Raises:
        SpinbenchError: there is no such method or backend, or the backend does not run here.
    """
    backend, methods = arguments.backend, arguments.method or registry.names("methods")
    supports = {method: registry.support(method, backend) for method in methods}
    refusals = [support.reason for support in supports.values() if not support.runs]
    if len(refusals) == len(supports) or (arguments.method and refusals):
        raise UnsupportedError(refusals[0])
    compiled = deadline.Stopwatch(counts_compilation=True)
    cells = list(product([method for method, support in supports.items() if support.runs], MODELS, CHAINS))
    with compiled:
        for method, kind, chains in track(cells, f"compile for {backend}", console=console(), transient=True):
            # Methods refuse models that they do not support.
            with suppress(SpinbenchError):
                runner.run(MODELS[kind](), method, backend, SAMPLES, chains=chains, precision=arguments.precision)
        if backend == defaults.BACKEND and not arguments.method:
            for kind in ("grid", "three states"):
                load(MODELS[kind](), load_sources(assumed=False)[0])
    number = len({method for method, _, _ in cells})
    print_line(
        f"{number} methods on {backend}: {compiled.cpu:.0f} s of the CPU; "
        f"compiled code is kept in {folders.cache_folder()}"
    )
    return 0

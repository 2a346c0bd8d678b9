"""The kinds of packages that `spinbench init` writes."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """What packages of one kind hold.

    Attributes:
        noun: what the package is, for its README.
        groups: of entry points, the first that of the package's name.
        source: template of the module.
        replaced: what of it is the author's, for the README.
        command: that shows it at work; {name} is the entry point's.
        loops: template of a second module, which the first one calls.
        checks: call of the conformance suite that is its test; empty: it has a test of its own.
    """

    noun: str
    groups: tuple[str, ...]
    source: str
    replaced: str = "the mathematics"
    command: str = "spinbench check --method {name} --backend numpy"
    loops: str = ""
    checks: str = 'method_checks("{name}", "numpy")'


KINDS = {
    "backend": Kind(
        noun="backend",
        groups=("backends",),
        source="backend.py",
        replaced="its parts, and check again",
        command="spinbench check --backend {name}",
        checks='checks(backend="{name}")',
    ),
    "method": Kind(
        noun="method",
        groups=("methods",),
        source="method.py",
        command="spinbench check --method {name}",
        checks='checks(method="{name}")',
    ),
    "c-kernel": Kind(
        noun="kernel in C",
        groups=("methods", "kernels.numpy"),
        source="kernel.txt",
        replaced="the loops",
        loops="c_loops.py",
    ),
    "numba-kernel": Kind(
        noun="kernel in Numba",
        groups=("methods", "kernels.numba"),
        source="kernel.txt",
        replaced="the loops",
        command="spinbench check --method {name} --backend numba",
        loops="numba_loops.txt",
        checks='method_checks("{name}", "numba")',
    ),
    "program": Kind(
        noun="external program", groups=("methods",), source="program.py", replaced="the command and the reading"
    ),
    "bound": Kind(
        noun="source of bounds",
        groups=("bounds",),
        source="bound.py",
        command="printf 'MARKOV\\n2\\n2 2\\n1\\n2 0 1\\n4\\n1 2 3 4\\n' > two.uai\nspinbench bracket two.uai",
        checks="",
    ),
    "family": Kind(
        noun="family of models",
        groups=("models",),
        source="family.py",
        command="spinbench sweep -m model={name} method=gibbs,bp backend=numba budget=smoke",
        checks="",
    ),
    "format": Kind(
        noun="file format",
        groups=("formats",),
        source="format.py",
        replaced="what is read and written",
        command="printf 'coins\\na 0.25\\nb 0.5\\n' > two.coins\n"
        "spinbench sweep -m model=file model.path=two.coins method=exact,gibbs backend=numpy budget=smoke",
        checks="",
    ),
    "metric": Kind(
        noun="metric",
        groups=("metrics",),
        source="metric.py",
        command="spinbench sweep -m model=grid model.rows=4 model.cols=4 method=bp,gibbs backend=numpy budget=smoke",
        checks="",
    ),
}
# Classes of templates, by what entry points of a group name.
CLASSES = {
    **{"methods": "Method", "backends": "Backend", "kernels": "Kernel", "bounds": "Bound"},
    **{"formats": "Format", "metrics": "Metric"},
}

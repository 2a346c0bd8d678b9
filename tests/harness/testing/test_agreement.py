"""Kernels of iterations that compute something else than the program, exact ones that are not, and underflow."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest

from spinbench.testing import Check, CheckError, method_checks

SOURCE = Path(__file__).with_name("iterated_plugin.py").read_text()
POINTS = {
    "methods": {"iterated": "Iterated", "sworn": "Exact", "summed": "Summed"},
    "kernels": {"iterated.numpy": "IteratedKernel", "sworn.numpy": "IteratedKernel"},
}
BUGS = [
    ("the last coupling counts less", "marginals differ by up to .* from the program's on numpy, on 'dense'"),
    ("fields of large models", "marginals differ by up to .* from the program's on numpy, on '101 variables'"),
]


@pytest.fixture(autouse=True)
def plugin(install_plugin: Any) -> None:
    install_plugin("iteratedplugin", SOURCE, POINTS)


def check_of(method: str, name: str, **settings: Any) -> Check:
    (found,) = [check for check in method_checks(method, "numpy", **settings) if check.name == name]
    return found


def test_without_a_bug_it_passes() -> None:
    for check in method_checks("iterated", "numpy"):
        with suppress(SkipTest):
            check()


@pytest.mark.parametrize(("bug", "message"), BUGS)
def test_kernels_that_compute_something_else_are_found(bug: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_of("iterated", "kernel and program", bug=bug)()


def test_a_kernel_that_computes_something_else_with_a_setting_is_found() -> None:
    with pytest.raises(AssertionError, match=r"marginals differ by up to .* from the program's on numpy"):
        check_of("iterated", "plain=True", bug="fields where plain")()


@pytest.mark.parametrize(
    ("bug", "tier"),
    [
        ("ends with the last variable", "generic"),
        ("a kernel that ends with the last variable", "native"),
        ("a kernel that ends with the first variable", "native"),
    ],
)
def test_an_end_that_looks_at_one_variable_is_found(bug: str, tier: Any) -> None:
    (check,) = [c for c in method_checks("iterated", "numpy", tier=tier, bug=bug) if c.name == "order of variables"]
    with pytest.raises(AssertionError, match=r"between two orders of its variables, .* does the end look at all"):
        check()


HURRIED = """
from dataclasses import dataclass
from spinbench.api import Program
from spinbench.methods.messages import bp

@dataclass(frozen=True, kw_only=True)
class Hurried(bp.BeliefPropagation):
    name = "hurried"
    summary = "belief propagation whose end looks at messages to the last variable alone"

    def program(self, backend):
        whole, xp = super().program(backend), backend.xp

        def step(key, t, state):
            found = whole.step(key, t, state)
            own = t.graph.source[t.incidence.target] == t.graph.source.max()
            moved = xp.where(own[:, None], xp.abs(found.values - state.values), 0.0)
            moved = xp.max(xp.concat([moved, xp.zeros_like(state.residual)[None, :]], axis=0), axis=0)
            ended = (state.converged > 0) | (moved <= self.smallest_change(backend.precision))
            return found._replace(converged=xp.where(ended, 1.0, 0.0), residual=xp.where(ended, 0.0, found.residual))

        return Program(whole.init, step, whole.observe)
"""


def test_an_end_that_looks_at_one_variables_messages_is_found(install_plugin: Any) -> None:
    install_plugin("hurriedplugin", HURRIED, {"methods": {"hurried": "Hurried"}})
    with pytest.raises(AssertionError, match=r"between two orders of its variables, .* does the end look at all"):
        check_of("hurried", "order of variables")()


def test_what_is_said_on_the_way_is_looked_at() -> None:
    with pytest.raises(AssertionError, match=r"the lower bound on log Z is .* too high"):
        check_of("iterated", "end of iterations", bug="a bound at fixed points alone")()


def test_who_is_said_to_be_exact_on_trees_is_held_to_it() -> None:
    with pytest.raises(AssertionError, match=r"marginals differ by .* from the exact one, where a tree's"):
        check_of("sworn", "accuracy, tree")()


HASTY = """
from dataclasses import dataclass, replace
from spinbench.methods.messages.bp import BeliefPropagation

@dataclass(frozen=True)
class Hasty(BeliefPropagation):
    name = "hasty"
    summary = "belief propagation that gives up early, and does not say so"

    def finished(self, trace):
        return trace.samples >= 10

    def estimate(self, model, tables, trace):
        return replace(super().estimate(model, tables, trace), doubts=())
"""


def test_who_ends_before_what_is_known_has_come_along_a_tree_is_found(install_plugin: Any) -> None:
    install_plugin("hastyplugin", HASTY, {"methods": {"hasty": "Hasty"}})
    check_of("hasty", "accuracy, tree")()
    with pytest.raises(AssertionError, match=r"differs? by .* from the exact one, where a tree's"):
        check_of("hasty", "accuracy, long tree")()


def test_tables_that_underflow_are_found() -> None:
    check_of("summed", "accuracy, wide tables")()
    with pytest.raises(CheckError, match="log Z = -inf"):
        check_of("summed", "accuracy, wide tables", bug="products of tables")()

"""Kernels of iterations that compute something else than the program, exact ones that are not, and underflow."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest

from spinbench.errors import InvalidResultError
from spinbench.testing import Check, method_checks

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
        return replace(super().estimate(model, tables, trace), converged=True, doubts=())
"""


def test_who_ends_before_what_is_known_has_come_along_a_tree_is_found(install_plugin: Any) -> None:
    install_plugin("hastyplugin", HASTY, {"methods": {"hasty": "Hasty"}})
    check_of("hasty", "accuracy, tree")()
    with pytest.raises(AssertionError, match=r"differs? by .* from the exact one, where a tree's"):
        check_of("hasty", "accuracy, long tree")()


def test_tables_that_underflow_are_found() -> None:
    check_of("summed", "accuracy, wide tables")()
    with pytest.raises(InvalidResultError, match="log Z = -inf"):
        check_of("summed", "accuracy, wide tables", bug="products of tables")()

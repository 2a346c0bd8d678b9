"""Ganak (pyganak): exact weighted model counting of clauses, with components that are met again remembered.

The formula is that of our own solver "ganak", which counts in a process that its time ends; here it is counted on its
own, as other libraries are.
"""

from __future__ import annotations

from typing import ClassVar

from spinbench.api import BackendProfile, Model
from spinbench.backends.peers import library
from spinbench.errors import ModelError
from spinbench.reference import network, solver
from spinbench.reference.counting.encoding import Formula, encode
from spinbench.reference.counting.ganak import compute_log_count, compute_marginals
from spinbench.reference.problem import Problem


class GanakBackend(library.LibraryBackend):
    """pyganak."""

    name = "ganak"
    requires: ClassVar[tuple[str, ...]] = ("pyganak",)
    profile = BackendProfile(packages=("pyganak",))
    install = "pip install pyganak"


class GanakExact(library.LibraryAnswer["tuple[Problem, Formula]"]):
    """log Z by a count, and marginals by one more for each state but the first of a variable."""

    notes = ("the library counts: each state of a variable takes a count of its own",)

    def build(self, model: Model) -> tuple[Problem, Formula]:
        problem = Problem(model)
        return problem, encode(problem.network)

    def solve(self, built: tuple[Problem, Formula], seed: int) -> library.Answer:
        problem, formula = built
        try:
            log_count = compute_log_count(formula, seed % 2**31)
        except solver.ZeroWeightError:
            raise ModelError(f"{problem.name}: no state has positive weight, so Z = 0") from None
        flat = problem.decode_marginals(compute_marginals(formula, log_count, seed % 2**31))
        return library.Answer(network.split(flat, problem.model.cardinalities), formula.log_scale + log_count)

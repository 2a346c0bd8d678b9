"""pyAgrum: Shafer-Shenoy inference on a Markov random field, on one thread.

Its Gibbs sampling and its loopy belief propagation take Bayesian networks alone, so that `exact` is all there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spinbench.api import BackendProfile, Model
from spinbench.backends.peers import library

if TYPE_CHECKING:
    import pyagrum


class PyAgrumBackend(library.LibraryBackend):
    """pyAgrum."""

    name = "pyagrum"
    requires: ClassVar[tuple[str, ...]] = ("pyagrum",)
    profile = BackendProfile(packages=("pyagrum",))


class PyAgrumExact(library.LibraryAnswer["tuple[pyagrum.MarkovRandomField, int]"]):
    """All marginals."""

    notes = (library.NO_LOG_Z,)

    def build(self, model: Model) -> tuple[pyagrum.MarkovRandomField, int]:
        import pyagrum

        pyagrum.setNumberOfThreads(1)
        problem, field = library.build_tables(model), pyagrum.MarkovRandomField()
        for v, size in enumerate(problem.sizes):
            field.add(pyagrum.RangeVariable(str(v), "", 0, size - 1))
        for scope, table in zip(problem.scopes, problem.tables, strict=True):
            factor = field.addFactor([str(v) for v in scope])
            factor[:] = np.ascontiguousarray(table.T)  # pyAgrum's last variable is the first axis
        return field, len(problem.sizes)

    def solve(self, built: tuple[pyagrum.MarkovRandomField, int], seed: int) -> library.Answer:
        import pyagrum

        field, count = built
        inference = pyagrum.ShaferShenoyMRFInference(field)
        inference.makeInference()
        return library.Answer([inference.posterior(str(v)).toarray() for v in range(count)])

"""pgmpy: variable elimination for each marginal, contracted greedily as by default; Gibbs sampling of small models.

Its sampler tabulates a conditional for each state of all other variables, and makes one chain after another.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spinbench.api import Backend, BackendProfile, Model, PairwiseModel
from spinbench.backends.peers import chains, library
from spinbench.methods.gibbs import gibbs, sweeps

if TYPE_CHECKING:
    from pgmpy.models import DiscreteMarkovNetwork


# Largest number of variables of a binary model: the sampler stores a table for each variable and state of the others,
# 12 · 2^11 of them.
MOST_VARIABLES = 12


class PgmpyBackend(library.LibraryBackend):
    """pgmpy."""

    name = "pgmpy"
    requires: ClassVar[tuple[str, ...]] = ("pgmpy",)
    profile = BackendProfile(packages=("pgmpy",))


class PgmpyExact(library.LibraryAnswer["tuple[DiscreteMarkovNetwork, library.ModelTables]"]):
    """log Z and all marginals, each by an elimination of its own."""

    def build(self, model: Model) -> tuple[DiscreteMarkovNetwork, library.ModelTables]:
        problem = library.build_tables(model)
        return _network(problem), problem

    def solve(self, built: tuple[DiscreteMarkovNetwork, library.ModelTables], seed: int) -> library.Answer:
        from pgmpy.inference import VariableElimination

        network, problem = built
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inference = VariableElimination(network)
            marginals = [inference.query([str(v)], show_progress=False).values for v in range(len(problem.sizes))]
        return library.Answer(
            marginals, float(np.log(marginals[0].sum())) + problem.scale
        )  # Markov networks: unnormalised marginals, which sum to Z


class PgmpyGibbs(chains.LibraryChains[np.ndarray]):
    """Sweeps variable by variable, in the order of the colours or of the numbers."""

    allowed: ClassVar[Mapping[str, tuple[object, ...]]] = {
        "scan": ("chromatic", "raster"),
        "sample": ("sweep",),
        "log_z": ("auto", "chib_bar", "none"),
        "precision_bits": (0,),
        "threads": (1,),
    }

    @classmethod
    def refuses(cls, method: chains.SweepMethod, backend: Backend, model: Model) -> str:
        if model.num_variables > MOST_VARIABLES:
            return (
                f"pgmpy tabulates all states of a model that it samples, {MOST_VARIABLES} variables at most; "
                f"{model.name} has {model.num_variables}"
            )
        return super().refuses(method, backend, model)

    def __init__(self, method: gibbs.Gibbs, backend: Backend, model: PairwiseModel, tables_: sweeps.Tables) -> None:
        super().__init__(method, backend, model, tables_)
        from pgmpy.sampling import GibbsSampling

        self.notes = (chains.THINNED, chains.UNCUT, *([chains.ONE_SIDED] if method.log_z == "auto" else []))
        self._names = [str(v) for v in self.order]
        self._sampler = GibbsSampling(_network(library.build_tables(model), self.order.tolist()))

    def begin(self, states: np.ndarray) -> np.ndarray:
        return states.copy()

    def move(self, library_state: np.ndarray, steps: int, seed: int, beta: float) -> np.ndarray:
        from pgmpy.factors.discrete import State

        outside = np.random.get_state()  # noqa: NPY002  # the library draws from NumPy's one generator
        try:
            np.random.seed(seed % 2**32)  # noqa: NPY002
            for c in range(library_state.shape[1]):
                start = [State(name, int(s)) for name, s in zip(self._names, library_state[:, c], strict=True)]
                *_, last = self._sampler.generate_sample(start_state=start, size=steps)
                library_state[:, c] = [state for _, state in last]
        finally:
            np.random.set_state(outside)  # noqa: NPY002
        return library_state

    def read(self, library_state: np.ndarray) -> np.ndarray:
        return library_state


def _network(problem: library.ModelTables, order: list[int] | None = None) -> DiscreteMarkovNetwork:
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.models import DiscreteMarkovNetwork

    network = DiscreteMarkovNetwork()
    network.add_nodes_from(str(v) for v in order or range(len(problem.sizes)))
    for scope in problem.scopes:
        names = [str(v) for v in scope]
        network.add_edges_from((a, b) for k, a in enumerate(names) for b in names[k + 1 :])
    shaped = zip(problem.scopes, problem.tables, strict=True)
    network.add_factors(*(DiscreteFactor([str(v) for v in scope], t.shape, t) for scope, t in shaped))
    return network

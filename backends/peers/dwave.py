"""dwave-samplers: simulated annealing at one temperature is Gibbs sampling; the tree decomposition is exact.

Its documentation calls the sequential order faster than the random one. What is called here is the compiled function
that `SimulatedAnnealingSampler.sample` itself calls, so that chains go on where they are, and dimod's copies, which for
small models take longer than the sweeps, are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spinbench.api import Backend, BackendProfile, Model, PairwiseModel, to_pairwise
from spinbench.backends.peers import chains, library
from spinbench.methods.gibbs import gibbs, sweeps

if TYPE_CHECKING:
    import dimod


class DWaveBackend(library.LibraryBackend):
    """dwave-samplers."""

    name = "dwave"
    requires: ClassVar[tuple[str, ...]] = ("dwave.samplers", "dimod")
    profile = BackendProfile(packages=("dwave-samplers",))


class DWaveGibbs(chains.LibraryChains[np.ndarray]):
    """Sequential sweeps by colour or by number, or at random variables, with Gibbs acceptance."""

    tempered = True
    call_updates = 50_000
    notes = (chains.THINNED, chains.UNCUT)
    allowed: ClassVar[Mapping[str, tuple[object, ...]]] = {
        "sample": ("sweep",),
        "log_z": ("auto", "chib_bar", "stones", "none"),
        "precision_bits": (0,),
        "threads": (1,),
    }

    def __init__(self, method: gibbs.Gibbs, backend: Backend, model: PairwiseModel, tables: sweeps.Tables) -> None:
        super().__init__(method, backend, model, tables)
        from dwave.samplers.sa.simulated_annealing import simulated_annealing

        form = library.spin_form(model, self.order)
        ends = form.edges[:, 0].tolist(), form.edges[:, 1].tolist()
        self._problem = (-form.h).tolist(), *ends, (-form.J).tolist()
        self._anneal, self._random = simulated_annealing, method.scan == "random"

    def begin(self, states: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(2 * states.T - 1, dtype=np.int8)

    def move(self, library_state: np.ndarray, steps: int, seed: int, beta: float) -> np.ndarray:
        moved: np.ndarray = self._anneal(
            len(library_state), *self._problem, steps, [beta], seed, library_state, self._random, "Gibbs"
        )[0]
        return moved

    def read(self, library_state: np.ndarray) -> np.ndarray:
        return (library_state.T > 0).astype(np.int8)


class DWaveExact(library.LibraryAnswer["tuple[dimod.BinaryQuadraticModel, float]"]):
    """log Z and all marginals by the tree decomposition, its order (min-fill) included in what is timed."""

    @classmethod
    def takes(cls, backend: Backend, model: Model) -> str:
        return library.pairs_refusal(backend.name, model)

    def build(self, model: Model) -> tuple[dimod.BinaryQuadraticModel, float]:
        import dimod

        form, n = library.spin_form(to_pairwise(model)), model.num_variables
        ends = form.edges[:, 0], form.edges[:, 1]
        quadratic = dimod.BinaryQuadraticModel.from_numpy_vectors(
            -form.h, (*ends, -form.J), 0.0, dimod.SPIN, variable_order=range(n)
        )
        return quadratic, form.constant

    def solve(self, built: tuple[dimod.BinaryQuadraticModel, float], seed: int) -> library.Answer:
        from dwave.samplers import TreeDecompositionSampler

        quadratic, constant = built
        sample_set = TreeDecompositionSampler().sample(quadratic, num_reads=1, marginals=True, seed=seed % 2**31)
        up = np.array([sample_set.info["variable_marginals"][i] for i in range(quadratic.num_variables)])
        return library.Answer(
            [np.array([1 - p, p]) for p in up], float(sample_set.info["log_partition_function"]) + constant
        )

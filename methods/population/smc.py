"""Annealed populations: sequential Monte Carlo, with annealed importance sampling and population annealing as settings.

A run takes P particles from β = 0, where they are independent draws, to the model at β = 1:

    for k = 1 … T:  w_i ← w_i exp((β_k - β_{k-1}) D(x_i)), D = log p*;
                    where (Σ w)² / Σ w² < `resample` P: Ẑ ← Ẑ mean(w), systematic resampling, w = 1;
                    `moves` Gibbs sweeps at β_k.

E Ẑ = Z, because nothing depends on the particles but the particles: the temperatures are chosen once, by a pilot, at
equal steps of its barrier Λ. (Chosen by the particles they weigh, they make Ẑ low, by 5 % with 50 particles.) Runs are
independent. log Z is the logarithm of the mean of Ẑ; marginals are means over runs, each weighed by its Ẑ, and in a
run over particles, of p(x_v | rest). Where few runs carry all the weight, fewer than 8 in effect, or would if
heavier ones were seen that are to be expected, both are doubted.

Neal, "Annealed importance sampling", Statistics and Computing 2001 (`resample=0`); Del Moral, Doucet, Jasra,
"Sequential Monte Carlo samplers", JRSS B 2006; Hukushima and Iba, "Population annealing and its application to a spin
glass", 2003 (`resample=1`).

**A chain of a run of spinbench is a population, a step is a whole run**, and nothing is burnt in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spinbench.api import Backend, Estimate, Method, MethodProfile, Model, Program, Reduction, Trace
from spinbench.foundation.parameters import check_setting, check_whole
from spinbench.methods.gibbs.host_arrays import HostArrays
from spinbench.methods.population.estimates import population_estimate, summarise_runs
from spinbench.methods.population.program import PopulationProgram, Tables
from spinbench.methods.tempering.pilot import estimate_barriers, place_rungs
from spinbench.methods.tempering.pt import plan_replicas

# Temperatures per unit of the barrier: between neighbours the relative variance of a weight is about a fifth, so that
# resampling loses few particles.
TEMPERATURES_PER_BARRIER = 8.0
# Particles per unit of the barrier: where sweeps mix, the relative standard deviation of Ẑ is then about a half.
PARTICLES_PER_BARRIER = 1.25
# Smallest and largest automatic (temperatures, particles); largest number of particles that may be requested.
MIN_SIZES, MAX_SIZES, MAX_PARTICLES = (4, 8), (512, 64), 2**16
# Largest number of variable updates in a run; above it the automatic choice lowers first particles, then temperatures,
# since a run of a large model would take minutes.
MAX_UPDATES = 2**24


@dataclass(frozen=True)
class Annealed(Method[Tables]):
    """Sequential Monte Carlo over annealed populations, with an unbiased estimate of Z.

    Attributes:
        particles: P of a population; 0: as many as the pilot's barrier asks for, 8 to 64. One is a run of annealed
            importance sampling, with nothing to resample.
        temperatures: T of a run; 0: as many as it asks for, 4 to 512; fewer, of both, where a run would have more than
            2^24 updates of variables. At one the draws of β = 0 are weighed as they are.
        moves: Gibbs sweeps at each temperature.
        resample: the share of P below which the effective number of particles makes them be drawn anew: 0 never
            (annealed importance sampling), 1 always (population annealing).
    """

    particles: int = 0
    temperatures: int = 0
    moves: int = 1
    resample: float = 0.5

    name: ClassVar[str] = "smc"
    summary: ClassVar[str] = "annealed populations with an unbiased estimate of Z; AIS, population annealing"
    profile = MethodProfile(family="annealing")
    model_form = "categorical"

    def __post_init__(self) -> None:
        check_whole(self, "particles", 0, MAX_PARTICLES)
        check_whole(self, "temperatures", 0)
        check_whole(self, "moves", 1)
        check_setting(self, "resample", 0 <= self.resample <= 1, "a number from 0 to 1")

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """z, square: (C,) log Ẑ and twice that; p: (M, C) log of Ẑ p."""
        return dict.fromkeys(("z", "square", "p"), "logsumexp")

    def plan(self, model: Model) -> Tables:
        """Tables of the sweeps; temperatures and the number of particles by the pilot."""
        tables, rows, signs, base = plan_replicas(model)
        betas, barriers = estimate_barriers(tables.over(HostArrays()), tables, model.cardinalities)
        count, particles = self._choose_sizes(float(barriers[-1]), model.num_variables)
        return Tables(
            betas=place_rungs(betas, barriers, count + 1),
            particles=np.zeros(particles),
            sizes=np.zeros(model.num_variables),
            replicas=tables,
            rows=rows,
            signs=signs,
            base=base,
        )

    def _choose_sizes(self, barrier: float, variables: int) -> tuple[int, int]:
        """T and P: what is set, else what the barrier asks for and `MAX_UPDATES` leave room for."""
        sizes = np.ceil(barrier * np.array([TEMPERATURES_PER_BARRIER, PARTICLES_PER_BARRIER])).astype(int)
        count, particles = np.clip(sizes, MIN_SIZES, MAX_SIZES).tolist()
        room = MAX_UPDATES // (max(variables, 1) * self.moves)
        count = self.temperatures or count
        # Particles are reduced before temperatures: more runs make up for small populations, but not for temperature
        # steps that are too long.
        particles = self.particles or int(np.clip(room // count, MIN_SIZES[1], particles))
        return self.temperatures or int(np.clip(room // particles, MIN_SIZES[0], count)), particles

    def step_updates(self, tables: Tables) -> float:
        """Of a whole run."""
        return len(tables.sizes) * len(tables.betas) * len(tables.particles) * self.moves

    def program(self, backend: Backend) -> Program:
        """Over `backend`'s arrays."""
        return PopulationProgram(backend, self.moves, self.resample).program()

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """Marginals and log Z, and what may be claimed of both."""
        runs = summarise_runs(model.cardinalities, trace)
        numbers = {"temperatures": len(tables.betas) - 1.0, "particles": float(len(tables.particles))}
        base, particles = float(tables.base), len(tables.particles)
        return population_estimate(model, runs, base, particles, runs.supported, numbers)

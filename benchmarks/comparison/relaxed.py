"""The relaxed density that all Hamiltonian samplers get."""

from __future__ import annotations

from dataclasses import dataclass

import spinbench
from comparison.answers import FloatArray
from spinbench.methods.relaxed.dhmc import DHMC
from spinbench.models import PairwiseModel


@dataclass(frozen=True)
class Density:
    """p(x) ∝ exp(-½ xᵀ Q⁻¹ x) Π (1 + exp(x_i + b_i)), A = I.

    Attributes:
        precision: (N, N) Q⁻¹.
        bias: (N,) b = a - d/2.
        step: of the leapfrog integrator; leapfrog: steps a sample.
    """

    precision: FloatArray
    bias: FloatArray
    step: float
    leapfrog: int


def density(model: PairwiseModel, leapfrog: int = 5) -> Density:
    """D = minshift + 10 %, and the step size at which spinbench's dual averaging accepts 90 %."""
    method = DHMC(leapfrog_steps=leapfrog, log_z="none")
    tables = method.plan(model)
    tuned = spinbench.run(model, method, budget=500, burn_in=2000, chains=16, seed=0)
    assert tables.precision is not None
    return Density(tables.precision, tables.bias, round(tuned.diagnostics["step_size"], 4), leapfrog)

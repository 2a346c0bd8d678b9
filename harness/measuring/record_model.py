"""The parts of a record that are about its model: size, zeros, and the exact answer."""

from __future__ import annotations

from spinbench.measuring.record_parts import Number, Part


class ModelFeatures(Part, frozen=True, kw_only=True):
    """Of the model, without impossible states.

    Attributes:
        variables: number of variables.
        factors: number of factors.
        states: largest number of states of a variable.
        order: largest number of variables of a factor.
        zeros: share of the tables' entries that are hard zeros.
        trivial_log_z_error: |error of log Z| in nats where each table is replaced by its mean.
        trivial_hellinger: mean Hellinger distance of uniform marginals to the exact ones.
    """

    variables: Number
    factors: Number
    states: Number
    order: Number
    zeros: Number
    trivial_log_z_error: Number | None = None
    trivial_hellinger: Number | None = None


class Reference(Part, frozen=True, kw_only=True):
    """The exact answer.

    Attributes:
        log_z: exact log Z in nats.
        method: the solver that gave the exact answer.
        reason: why there is no exact answer.
    """

    log_z: Number | None = None
    method: str | None = None
    reason: str | None = None

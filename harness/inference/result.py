"""The one result type, of `spinbench.run` and `spinbench.exact` alike."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spinbench.errors import SpinbenchError
from spinbench.foundation import atomic, frames, remarks
from spinbench.inference.checks.evidence import LEVELS, Evidence, Level, log_z_evidence, marginals_evidence
from spinbench.inference.stored_states import exports
from spinbench.inference.stored_states.source import RunSource, StateAndWeight
from spinbench.mathematics import all_states

if TYPE_CHECKING:
    import os
    from collections.abc import Hashable, Mapping

    from spinbench.api import Bound, LogZKind, Precision, Tier, host_arrays
    from spinbench.inference.batch_timings import Checkpoint, Laps, Seconds
    from spinbench.models import Model


@dataclass(frozen=True)
class Result:
    """What a method found, and at what cost.

    Attributes:
        marginals: (N,) float64 p(s_i = 1); for models with K-ary variables a list of (K_v,) arrays; either way
            `Marginals`, with `error_to(other)` and arithmetic. NaN in exact answers alone: of variables that sum out of
            log Z, where their own marginals are out of reach.
        marginals_se: their standard errors, in the same layout: what the run knows of its own scatter, which falls as
            1 / sqrt(n); None for deterministic methods.
        marginals_error_bound: error bounds, which allow for what chains remember of their starts and for what the run
            may not have seen (`mathematics.claims`): of runs that are "ok" at most one number in 200 is further off.
        log_z, log_z_se, log_z_error_bound, log_z_kind: natural logarithm of Z, its standard error and error bound, and
            what it is: "estimate", "lower" or "upper" bound, or "exact".
        bounds: on log Z, each with its side and grade: what `log_z` is by its kind, what the method gives beside, and
            what `draws` weigh together ("best states").
        ess: effective sample sizes, summed over chains, in the layout of `marginals`; of what never varied, or evidence
            determines, the number of draws.
        r_hat: split R-hat, in the same layout; 1 where evidence determines.
        pairs: joint probabilities in the model that was given to `run`: of a `PairwiseModel` (E,) p(s_i = s_j = 1) of
            its edges, of a `FactorGraph` a flat table for each factor; None where the method gives none or had it
            converted, or where the variables of a factor share none once it is simplified.
        pairs_se: their standard errors, in the same layout.
        draws: (N, S) integer states of the variables that the user gave, and their log weights (S,) or None.
        seconds: plan, compile, burn-in and run.
        samples: kept samples of each chain.
        trajectory: checkpoints (seconds, samples, estimate), spaced geometrically; of small models estimates are made
            when they are asked for.
        tier: what ran: "native", a kernel, or "generic", the method's program on the backend's arrays.
        kernel: distribution and version of the kernel; empty where none ran.
        notes: a sentence on what fell away before the method saw the model, one for each kernel that refused, and one
            for each of another distribution that was not asked.
        status: the verdict: "ok", or what speaks against the numbers: "not converged" (an iteration ended without
            reaching its tolerance), "marginals not mixed", "marginals too short", "marginals too few chains",
            "marginals unresolved" and "log Z unresolved" (nobody knows their errors). Of a race's answer
            also "log Z outside the probable bracket", or "certified", of what other candidates told.
        log_z_estimates: every estimator of log Z that ran, by name, as (value, standard error).
        diagnostics: scalars such as the acceptance rate.
        method, backend, model: names; settings: the method's settings.
        chains, seed, precision, device, burn_in: as run.
        laps: what a step cost; None for `spinbench.exact`.
        reached: whether the tolerance of `until` was; None where none was given.
        order: of `spinbench.exact`, the variables as they were eliminated, which its `order=` takes; None where nothing
            was eliminated.
    """

    marginals: Any
    marginals_se: Any
    log_z: float | None
    log_z_se: float | None
    log_z_kind: LogZKind
    ess: Any
    r_hat: Any
    seconds: Seconds
    samples: int
    tier: Tier
    status: str
    method: str
    backend: str
    model: str
    trajectory: tuple[Checkpoint, ...] = ()
    log_z_estimates: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    chains: int = 1
    seed: int = 0
    precision: Precision = "float64"
    device: str = "cpu"
    burn_in: int = 0
    laps: Laps | None = None
    draws: host_arrays.Draws | None = None
    bounds: tuple[Bound, ...] = ()
    marginals_error_bound: Any = None
    log_z_error_bound: float | None = None
    kernel: str = ""
    reached: bool | None = None
    notes: tuple[str, ...] = ()
    order: tuple[int, ...] | None = field(default=None, repr=False, compare=False)
    source: RunSource = field(default_factory=RunSource, repr=False, compare=False)

    @cached_property
    def evidence(self) -> Mapping[str, Evidence]:
        """What supports "marginals" and "log_z", where there are any: level, error bound, and why they are doubtful."""
        evidence = {}
        if self.marginals is not None:
            errors = self.marginals_se, self.marginals_error_bound
            evidence["marginals"] = marginals_evidence(self.log_z_kind, *errors, self.status)
        if self.log_z is not None:
            log_z_errors = self.log_z_se, self.log_z_error_bound
            evidence["log_z"] = log_z_evidence(self.log_z, self.log_z_kind, log_z_errors, self.bounds, self.status)
        return evidence

    @property
    def level(self) -> Level:
        """The weakest level of `evidence`: "exact", "certified", "bounded", "converged" or "doubtful"."""
        return max((each.level for each in self.evidence.values()), key=LEVELS.index, default="doubtful")

    @property
    def states(self) -> Any:
        """(C, S, N) unsigned integers, as narrow as they can be: of each chain S states of the variables that the user
        gave, evenly spaced up to the end of the run; None unless `keep` asks for them."""
        return self.source.stored

    @property
    def best_state(self) -> Any:
        """(M,) int64, the heaviest state that is known, of all variables that the user gave; None where none is known.

        Looked for when it is first asked for: among the states in which the chains ended, those that `keep` kept,
        `draws` and the mode of the marginals; the heaviest 16 are raised, variable by variable, until no single change
        helps (of models of at most 100,000 variables without 1-of-K groups). Of exact answers it is the heaviest of all
        (MAP), by elimination; of others nothing says that there is none heavier.

        Raises:
            IntractableError: the answer is exact, but finding its state would take more memory than was allowed.
        """
        return self._best[0]

    @property
    def best_log_weight(self) -> float | None:
        """log p* of `best_state` in nats, in the model that was given to `run`, evidence and constants included."""
        return self._best[1]

    @property
    def best_assignment(self) -> dict[Hashable, Hashable] | None:
        """`best_state` by the variables' labels, with the names of states that have some."""
        return None if self.best_state is None else self.source.names.assignment(self.best_state.tolist())

    @property
    def heaviest_weight(self) -> float | None:
        """`best_log_weight` where a state is all that was asked for, which is known then; else None."""
        if self.marginals is None and self.log_z is None:
            return self.best_log_weight
        return None

    @property
    def pairs(self) -> Any:
        """Found when they are first asked for; InvalidResultError where they cannot be."""
        return self._joint[0]

    @property
    def pairs_se(self) -> Any:
        """As `pairs`."""
        return self._joint[1]

    def to_dataframe(self, kind: frames.Kind = "pandas") -> Any:
        """The marginals as a data frame, a line for each state of each variable, of binary models alike.

        Columns: variable, state, variable_name and state_name where the model's source has names, marginal, and
        standard_error, ess and r_hat where the method has them.

        Args:
            kind: "pandas", "polars" or "arrow".

        Raises:
            SpinbenchError: no such kind, or there are no marginals.
            UnavailableError: its package is not installed.
        """
        return frames.frame(self.columns(), kind)

    def columns(self) -> dict[str, np.ndarray]:
        """What `to_dataframe` makes a data frame of: an array of each column, by name.

        Raises:
            SpinbenchError: there are no marginals.
        """
        marginals = self.marginals
        if marginals is None:
            raise SpinbenchError(f"{self.method} gives no marginals")
        variables, states = all_states.names(marginals)
        columns = {"variable": variables, "state": states, **self._name_columns(variables, states)}
        columns["marginal"] = all_states.marginals_of_all_states(marginals)
        errors = {"standard_error": self.marginals_se, "error_bound": self.marginals_error_bound}
        for name, values in {**errors, "ess": self.ess, "r_hat": self.r_hat}.items():
            if values is not None:
                columns[name] = all_states.errors_of_all_states(values)
        return columns

    def _name_columns(self, variables: np.ndarray, states: np.ndarray) -> dict[str, np.ndarray]:
        """Names as text, of whole rows of variables and states."""
        names, columns = self.source.names, {}
        if names.labels:
            columns["variable_name"] = np.array([str(names.label(v)) for v in variables.tolist()], dtype=object)
        if names.states:
            pairs = zip(variables.tolist(), states.tolist(), strict=True)
            columns["state_name"] = np.array([str(names.state(v, state)) for v, state in pairs], dtype=object)
        return columns

    def to_arviz(self) -> Any:
        """The kept states as an `arviz.InferenceData`, for its diagnostics and plots.

        `posterior` has x (chain, draw, node), `sample_stats` log p* of each state as lp, and of the whole run, not
        of the kept states alone, ess and r_hat (node), of models with K-ary variables (node, state).

        Raises:
            SpinbenchError: no states were kept.
            UnavailableError: arviz is not installed.
        """
        of_the_run = {"ess": self.ess, "r_hat": self.r_hat}
        statistics = {name: values for name, values in of_the_run.items() if values is not None}
        return exports.to_inference_data(*self._require_states(), self._about(), statistics)

    def to_sampleset(self) -> Any:
        """The kept states of all chains as a `dimod.SampleSet`, binary or integer; the energies are -log p*.

        Raises:
            SpinbenchError: no states were kept.
            UnavailableError: dimod is not installed.
        """
        return exports.to_sample_set(*self._require_states(), self._about())

    def plot(self) -> Any:
        """The marginals with their errors, and log Z with its bounds and the claimed errors over time, as far as known.

        Returns:
            An array of Matplotlib's axes, one a panel; their figure is pyplot's, so that a notebook shows it once,
            whatever is done with them, and `plot()[0].figure.savefig(…)` writes it.

        Raises:
            SpinbenchError: the answer has nothing to draw.
        """
        from spinbench.inference.notebook.display import panels

        return panels(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from spinbench.inference.notebook.display import html

        return html(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the answer to a file, which appears whole or not at all: what, its suffix says.

        `.MAR`, `.PR` and `.MPE` are the UAI competitions' formats, of marginals, of log10 Z and of `best_state`; `.csv`
        has the columns of `to_dataframe`, `.order` the numbers of `order`.

        Raises:
            SpinbenchError: another suffix, what the method does not give, or a file that cannot be written.
        """
        target = Path(path)
        try:
            atomic.write_bytes(target, exports.encode(self, target))
        except OSError as error:
            raise SpinbenchError(f"{target}: the file cannot be written ({error.strerror or error})") from None

    @cached_property
    def _joint(self) -> host_arrays.PairsWithErrors:
        """Pairs and their errors."""
        return self.source.find_pairs()

    @cached_property
    def _best(self) -> StateAndWeight:
        return self.source.find_best_state(self.draws, self.marginals)

    def _require_states(self) -> tuple[Model, np.ndarray]:
        if self.source.stored is None or self.source.model is None:
            raise SpinbenchError("no states were kept; run(..., keep=1000) keeps 1000 of each chain")
        return self.source.model, self.source.stored

    def _about(self) -> dict[str, str | int]:
        return {name: getattr(self, name) for name in ("method", "backend", "model", "seed", "samples", "burn_in")}

    def __repr__(self) -> str:
        answer = "no log Z"
        if self.log_z is not None:
            answer = f"log Z {self.log_z_kind} {self.log_z:.6g}{remarks.plus_minus(self.log_z_se)}"
        elif self.heaviest_weight is not None:
            answer = f"heaviest state of log weight {self.heaviest_weight:.6g}"
        notes = "".join(f"; {note}" for note in self.notes)
        return (
            f"Result({self.method} on {self.backend}, model {self.model!r}: {answer}, "
            f"{self.samples} samples x {self.chains} chains in "
            f"{remarks.format_seconds(self.seconds.run)}, {self.status}{notes})"
        )


def replace_pairs(result: Result, pairs: host_arrays.Pairs, errors: host_arrays.Pairs = None) -> Result:
    """A result with other joint probabilities, or None, and their errors."""
    return replace(result, source=replace(result.source, pairs=(pairs, errors)))

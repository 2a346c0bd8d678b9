"""The one order in which an estimate is finished: checked, doubted, and said of the model that was given."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from spinbench.api import Estimate
from spinbench.api.bounds import stated
from spinbench.api.estimate import verdict
from spinbench.inference import batch_timings, budget, marginals, origins
from spinbench.inference.checks import (
    best_states,
    disconnected_support,
    evidence,
    joint_validity,
    missed_modes,
    validity,
)
from spinbench.inference.result import Result
from spinbench.models import FactorGraph

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spinbench.api.host_arrays import PairsWithErrors
    from spinbench.api.trace import Trace
    from spinbench.inference import binding, driver
    from spinbench.inference.request import Request
    from spinbench.inference.stored_states.source import RunSource
    from spinbench.models import Model
    from spinbench.models.simplification import Simplification


class Estimator:
    """Estimates of a run's trace, at checkpoints and at the end."""

    def __init__(self, request: Request, simple: Simplification, bound: binding.BoundMethod, chains: int) -> None:
        """Of a run.

        Args:
            request: what is asked for.
            simple: the model that is left of the one that was given.
            bound: the method, planned for that as it takes it.
            chains: how many there are.
        """
        self._request, self._simple, self._bound, self._chains = request, simple, bound, chains
        self._newest, self._samples = Estimate(), 0
        self._checks: tuple[Callable[[Estimate], Sequence[str]], ...] = ()
        if request.is_sampler:
            long = missed_modes.is_long(request.budget, chains, bound.model.num_variables)
            self._checks = (
                partial(
                    disconnected_support.flag_disconnected_support,
                    bound.model,
                    request.options.seed,
                    single_site=bound.method.profile.single_site,
                ),
                partial(missed_modes.flag_missed_modes, bound.model, long=long),
            )

    def __call__(self, trace: Trace) -> Estimate:
        """The method's estimate of a trace.

        Raises:
            InvalidResultError: it is none, such as a probability above 1.
        """
        request, bound, model = self._request, self._bound, self._bound.model
        if self._simple.is_solved and bound.method.kind != "direct":
            return self._exact(trace)
        reported = bound.method.estimate(model, bound.tables, trace)
        estimate = validity.flag_infinite_errors(validity.check(reported, model, request.who))
        self._keep_pairs(reported, trace.samples)
        estimate = validity.widen_errors(request.options.precision, estimate, model)
        # In sequence: probes are expensive and run only if no earlier check raised a flag.
        for check in self._checks:
            estimate = validity.add_flags(estimate, check(estimate))
        if estimate.draws:
            estimate = best_states.by_draws(model, estimate)
        estimate = origins.allowing_for(estimate, self._simple.rounding)
        return marginals.wrap_marginals(
            origins.in_terms_of_origin(model, estimate, trace.samples * self._chains, request.options.seed)
        )

    def _exact(self, trace: Trace) -> Estimate:
        """Of a model of which simplification leaves nothing, whatever the method: it has one state."""
        model = self._simple.model
        assert isinstance(model, FactorGraph)
        ones = [np.ones(1) for _ in model.cardinalities]
        zeros = [np.zeros(1) for _ in model.cardinalities]
        log_z = float(model.log_weight(np.zeros(model.num_variables, dtype=np.int64)))
        pairs = [np.ones(1) for _ in model.factors]
        draws = [np.full(1, float(trace.samples * self._chains)) for _ in model.cardinalities]
        estimate = Estimate(ones, zeros, log_z, log_z_kind="exact", ess=draws, r_hat=ones, pairs=pairs)
        self._keep_pairs(estimate, trace.samples)
        estimate = replace(estimate, pairs=None)
        return marginals.wrap_marginals(
            origins.in_terms_of_origin(model, estimate, trace.samples * self._chains, self._request.options.seed)
        )

    def _keep_pairs(self, estimate: Estimate, samples: int) -> None:
        """Those of the newest estimate; those of earlier ones would take memory for nothing."""
        if samples >= self._samples:
            self._newest, self._samples = joint_validity.copy_pairs(estimate), samples

    def result(self, outcome: driver.Run, prepared: float, source: RunSource) -> Result:
        """What a run came to.

        Args:
            outcome: of the run, whose estimate is one of these.
            prepared: seconds that simplification and initial states took.
            source: of pairs and of the best state.
        """
        estimate, bound, request = outcome.estimate, self._bound, self._request
        method, tolerance, sentence, reached = bound.method, request.budget.until, "", None
        if tolerance is not None:
            reason, reached = "", tolerance.reached(estimate)
            if reached:
                reason = evidence.doubt(estimate, budget.ERRORS[tolerance.what])
            sentence = tolerance.sentence(estimate, reason)
        return Result(
            marginals=estimate.marginals,
            marginals_se=estimate.marginals_se,
            marginals_error_bound=estimate.marginals_error_bound,
            log_z=estimate.log_z,
            log_z_se=estimate.log_z_se,
            log_z_error_bound=estimate.log_z_error_bound,
            log_z_kind=estimate.log_z_kind,
            bounds=stated(estimate.log_z, estimate.log_z_kind, estimate.bounds, method.name),
            ess=estimate.ess,
            r_hat=estimate.r_hat,
            draws=estimate.draws,
            seconds=batch_timings.Seconds(
                plan=prepared + bound.plan_seconds,
                compile=bound.bind_seconds + outcome.compile_seconds,
                burn_in=outcome.burn_in_seconds,
                run=outcome.run_seconds,
                transfer=getattr(bound.engine, "transfer_seconds", 0.0),
            ),
            samples=outcome.trace.samples,
            tier=bound.tier,
            status=verdict(estimate),
            method=method.name,
            backend=request.backend,
            model=request.model.name,
            trajectory=tuple(outcome.trajectory),
            log_z_estimates=estimate.log_z_estimates,
            diagnostics=estimate.diagnostics,
            settings=asdict(method),  # type: ignore[call-overload]
            chains=1 if method.kind == "direct" else self._chains,
            seed=request.options.seed,
            precision=request.options.precision,
            device=request.options.device,
            burn_in=outcome.burn_in,
            laps=outcome.laps,
            kernel=bound.kernel,
            reached=reached,
            notes=tuple(filter(None, [self._simple.note, sentence, *bound.notes])),
            source=source,
        )

    def pairs(self) -> PairsWithErrors | Callable[[], PairsWithErrors]:
        """Joint probabilities of the newest estimate and their errors, of the variables that were given, or what gives
        them; of a conversion the edges are others, and there are none."""
        if self._bound.model is not self._simple.model and not self._simple.is_solved:
            return None, None
        return partial(_pairs, self._simple, self._simple.model, self._newest, self._request.who)


def _pairs(simple: Simplification, model: Model, estimate: Estimate, who: str) -> PairsWithErrors:
    return origins.pairs_as_given(simple, joint_validity.with_pairs(estimate, model, who))

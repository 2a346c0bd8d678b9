"""`spinbench.audit`: whether samples are draws of a model's law, and how cold they are if they are not."""

from __future__ import annotations

import csv
import io
import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

import numpy as np

from spinbench.auditing import statistics
from spinbench.auditing.checks import (
    Check,
    Draws,
    Row,
    check_chains,
    check_conditionals,
    check_energy,
    check_heaviest,
    check_rows,
    check_state_frequencies,
    check_temperature,
    compare_frequencies,
    largest_r_hat,
    marginal_events,
    pair_events,
    pair_probabilities,
)
from spinbench.auditing.known import (
    SPACING,
    check_bracket,
    check_modes,
    check_symmetry,
    event_probabilities,
    exact_answer,
    fit_by_energy,
    heaviest_probability,
    mean_log_weight,
)
from spinbench.auditing.samples import read_samples
from spinbench.errors import SpinbenchError
from spinbench.foundation import atomic
from spinbench.inference import answers, request
from spinbench.inference.budget import check_probability
from spinbench.models import Model, to_factor_graph

# Probability with which an audit rejects draws from the model's own law.
ALPHA = 0.01
# Largest number of values of conditional probabilities that are computed, in all and per second of the budget, of which
# they take about a quarter; more draws are thinned.
MAX_LOGITS, LOGITS_A_SECOND = 2**25, 2**19
# Values per second of the budget in the comparison of frequencies with exact ones, which takes about a quarter of it;
# more draws are thinned.
SERIES_A_SECOND = 2**20
# Share of the budget for one exact answer: the check of energies and the fit of β need a few answers more.
EXACT_SHARE = 1 / 8


@dataclass(frozen=True)
class Audit:
    """What `spinbench.audit` found.

    Attributes:
        model: its name.
        checks: what was compared, with a p-value each; one fails whose p-value times the number of checks is below
            `alpha`.
        alpha: probability with which draws of the law itself fail.
        rows: frequencies of states of single variables and of pairs (factors) beside exact probabilities.
        truth: what the samples were compared with, in words.
        draws, effective: draws, and independent draws that their log weights are worth.
        beta, beta_se: inverse temperature that fits the samples, 1 for draws of the law, and its standard error.
        beta_by: "maximum likelihood" or "maximum pseudo-likelihood".
        r_hat: the largest split R-hat of single variables' states; NaN without chains.
        notes: what was assumed of the samples, and what could not be compared.
    """

    model: str
    checks: tuple[Check, ...]
    alpha: float
    truth: str
    draws: int
    effective: float
    rows: tuple[Row, ...] = ()
    beta: float = math.nan
    beta_se: float = math.nan
    beta_by: str = "not fitted"
    r_hat: float = math.nan
    notes: tuple[str, ...] = ()

    @property
    def passes(self) -> bool:
        """Whether no check fails."""
        return not any(map(self.fails, self.checks))

    def fails(self, check: Check) -> bool:
        """Whether a check speaks against the samples, all checks considered."""
        return check.p_value * len(self.checks) < self.alpha

    def sentences(self) -> list[str]:
        """What it says, a line each."""
        failed = [check.name for check in self.checks if self.fails(check)]
        verdict = "the samples pass"
        if failed:
            verdict = f"the samples fail: {', '.join(failed)}"
        return [
            f"{verdict} (draws of the law itself fail with probability {self.alpha:g})",
            f"{self.draws} draws, worth {self.effective:.4g} independent ones; compared with {self.truth}",
            f"inverse temperature {self.beta:.4g} ± {self.beta_se:.2g} ({self.beta_by}), where 1 is the model's",
            *self.notes,
        ]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `rows` as CSV.

        Raises:
            SpinbenchError: the file cannot be written.
        """
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(Row._fields)
        for row in self.rows:
            numbers = map(repr, row[3:])
            table.writerow([row.quantity, " ".join(map(str, row.variables)), " ".join(map(str, row.states)), *numbers])
        try:
            atomic.write_bytes(Path(path), text.getvalue().encode())
        except OSError as error:
            raise SpinbenchError(f"{path}: the file cannot be written ({error.strerror or error})") from None

    def __repr__(self) -> str:
        return f"Audit({self.model!r}: {'; '.join(self.sentences())})"


def audit(samples: object, model: Model, *, alpha: float = ALPHA, budget: str = "10 s", seed: int = 0) -> Audit:
    """Whether samples of any sampler are draws of p(x) = p*(x) / Z.

    Where an exact answer is predicted to be cheap, frequencies of single variables and of pairs, the mean log weight,
    the frequencies of states of a small model, the heaviest state and each chain are compared with it. Elsewhere each
    variable is compared with what its neighbours say of it, the heaviest state that is found with a bracket of log Z,
    chains with each other, and modes that the samples have missed are looked for. p-values are adjusted for the number
    of comparisons (Bonferroni), so that draws of the law itself fail with probability `alpha` at most, but for the
    approximations of correlated chains.

    Args:
        samples: a file or an object, as of `spinbench.auditing.samples.read_samples`: an array (draws, variables) of
            independent draws, (variables, chains, draws) of chains; spins -1 and +1 of binary models or states from 0.
        model: any model.
        alpha: probability of a false alarm, between 0 and 1.
        budget: seconds, such as "10 s": exact answers that are predicted to take an eighth of it are not asked for,
            bounds get half of it, of more draws than it has time for some are looked at, and what would begin when it
            is spent is left out, which a note says.
        seed: of what is searched.

    Raises:
        SpinbenchError: these are no samples of the model, or a wrong argument.
        ModelError: Z = 0.
    """
    request.check_model(model)
    check_probability("alpha", alpha)
    seconds = answers.seconds_allowed(budget)
    until = monotonic() + seconds
    model = replace(model, origin=None)
    read = read_samples(samples, model)
    graph = to_factor_graph(model)
    log_weights = model.log_weight(np.moveaxis(read.states, 0, -1))
    impossible = int((log_weights == -np.inf).sum())
    if impossible:
        detail = f"{impossible} of {log_weights.size} draws have weight 0 in the model"
        failed = Check("possible states", 0.0, detail)
        return Audit(model.name, (failed,), alpha, "the model's zeros", log_weights.size, 0.0, notes=tuple(read.notes))
    draws = Draws(read.states, log_weights, read.chained)
    thin_draws = draws.thin(sum(graph.cardinalities), min(MAX_LOGITS, int(LOGITS_A_SECOND * seconds)))
    logits = statistics.local_logits(graph, thin_draws.states)
    beta = (*statistics.fit_beta(logits), "maximum pseudo-likelihood")
    events, notes = marginal_events(model), list(read.notes)
    exact = exact_answer(model, EXACT_SHARE * seconds)
    checks: list[Check | None]
    rows: list[Row] = []
    if exact is not None:
        p = event_probabilities(exact, model)
        joint = pair_events(model)
        looked = draws.thin(len(events) + len(joint), int(SERIES_A_SECOND * seconds))
        rows = compare_frequencies("marginal", looked, events, p)
        pairs = compare_frequencies("pair", looked, joint, pair_probabilities(model, exact.pairs))
        means = [mean_log_weight(model, b, seconds) for b in (1 - SPACING, 1.0, 1 + SPACING)]
        top = heaviest_probability(exact)
        checks = [
            check_rows("marginals", rows),
            check_rows("pairs", pairs) if pairs else None,
            check_energy(draws, means, SPACING),
            check_state_frequencies(model, draws),
            check_heaviest(draws, exact.best_state, (top, top)),
            check_chains(looked, events, p),
        ]
        rows += pairs
        beta = fit_by_energy(model, draws, beta, until)
        truth = "exact answers"
    else:
        checks = [check_conditionals(thin_draws, logits), check_temperature(thin_draws, logits)]
        looked = thin_draws
        checks += [check_chains(thin_draws, events, None), check_symmetry(model, thin_draws)]
        checks += [check_modes(model, thin_draws, notes), check_bracket(model, draws, until, seed, notes)]
        truth = "what each variable's neighbours say of it, and bounds on log Z: an exact answer is out of reach"
    times, r_hat = np.ones(1), math.nan
    if read.chained:
        times, r_hat = statistics.autocorrelation_times(log_weights[None]), largest_r_hat(looked, events)
    if looked.number < draws.number:
        notes.append(f"frequencies are those of {looked.number} of the draws, evenly spaced, as the budget allows")
    done = [check for check in checks if check is not None]
    if not done:
        raise SpinbenchError(f"{model.name}: {draws.number} draws are too few to compare anything")
    return Audit(
        model.name,
        tuple(done),
        alpha,
        truth,
        draws.number,
        draws.number / float(times[0]),
        rows=tuple(rows),
        beta=beta[0],
        beta_se=beta[1],
        beta_by=beta[2],
        r_hat=r_hat,
        notes=tuple(notes),
    )

"""A race: a few candidates run for a while, and the one that `ranking` expects to err least has what is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from spinbench.api.bounds import Bound
from spinbench.foundation import deadline
from spinbench.foundation.child import first_ready
from spinbench.foundation.platforms import available_cores
from spinbench.foundation.remarks import format_seconds
from spinbench.inference.advising import brackets, ranking
from spinbench.inference.advising.entrant import Entrant, work_of
from spinbench.inference.advising.portfolio import Choice
from spinbench.inference.advising.ranking import LARGEST, Target, View
from spinbench.models import Model

# Share of the budget for the first run of each candidate, and of all, loading and compiling included.
TRIAL, TRIALS = 0.06, 0.4
# Share of the remaining seconds for a first run as long as there is no answer.
PATIENCE = 0.7
# Factor on its seconds, and seconds beside them, that a first run may take where another has an answer.
OVERRUN, LOADING = 1.5, 0.5
# Share of the seconds after the first runs for a candidate of another kind than the winner, if none may confirm it yet.
WITNESS = 0.2
# Factor on the error that the portfolio expects of a candidate, where no first run tells: the best on recorded runs.
UNTRIED = 2.0
# Share of the time remaining at the end that the winner's last run is planned to take.
FINAL = 0.85
# Share of the budget, and seconds, by which loading, or a first answer, may delay the end; as many seconds again is the
# last run late at most, and commands end within a second of their budget.
LOADED, LATE_SECONDS = 0.1, 0.5

Watch = Callable[[Sequence[Entrant], str], None]


@dataclass
class Race:
    """Between candidates on a model.

    Attributes:
        model: to be raced on.
        entrants: all that took part, in the order of their start.
        size: how many of them race; the others take the places of those that give no answer.
        target: what is judged.
        budget, deadline: seconds in all, and when they are over, on the clock `foundation.deadline.now`.
        chains: of every run.
        watch: is told of every step.
        known_bounds: bounds on log Z that no candidate gave.
        loading: seconds of first runs beyond those that were asked for.
    """

    model: Model
    entrants: list[Entrant]
    target: Target
    budget: float
    deadline: float
    chains: int
    watch: Watch
    known_bounds: tuple[Bound, ...] = ()
    size: int = 3
    loading: float = 0.0

    @property
    def left(self) -> float:
        """Seconds on the clock of budgets; loading and a first answer are beside the budget, up to a limit."""
        beside = LATE_SECONDS
        if any(entrant.result is not None for entrant in self.entrants):
            beside = min(self.loading, LOADED * self.budget, LATE_SECONDS)
        return self.deadline + beside - self._now()

    def run(self) -> None:
        """All of it; the winner is the first of `views` then."""
        try:
            self._try_all()
            self._finish()
        finally:
            for entrant in self.entrants:
                if entrant.child is None:
                    entrant.fate = "others were expected to do better, or had the time"
                entrant.close()

    def views(self) -> list[View]:
        """What the candidates say, in and out of the race, from the best to the worst."""
        views: list[View | None] = []
        bounds = self.bounds()
        for entrant in self.entrants:
            if entrant.result is None:
                continue
            view = ranking.view(entrant.candidate, entrant.result, self.target)
            if self.target == "log_z":
                view = brackets.judge_by_bounds(view or brackets.view_of_bounds(entrant.candidate, bounds), bounds)
            views.append(view)
        return ranking.order([view for view in views if view is not None])

    def bounds(self) -> tuple[Bound, ...]:
        """The tightest of all on log Z."""
        results = [entrant.result for entrant in self.entrants if entrant.result is not None]
        return brackets.tightest(results, self.known_bounds)

    def _now(self) -> float:
        """On the clock of budgets, to which processes that have not ended have not been added yet."""
        now = deadline.now()
        if deadline.on_cpu():
            children = [entrant.child for entrant in self.entrants if entrant.child is not None]
            now += sum(child.cpu_seconds() for child in children if child.alive)
        return now

    def _tell(self, now: str) -> None:
        """What happens now, and the best answer so far."""
        best = "".join(f"; best so far: {view.summary()}" for view in self.views()[:1])
        self.watch(self.entrants, f"{now}{best}")

    def _claiming(self) -> list[Entrant]:
        """Samplers that race."""
        return [entrant for entrant in self.entrants if entrant.racing and entrant.sampler]

    def _exact(self) -> bool:
        return any(view.exact for view in self.views())

    def _try_all(self) -> None:
        """The first run of each, side by side on the processor's cores.

        It goes on for as long as nobody who claims errors has spoken: the answer of others is nothing to judge by.
        """
        until = self._now() + TRIALS * self.left
        waiting, running = [entrant for entrant in self.entrants if not entrant.runs_once], list[Entrant]()
        # CPU seconds of parallel candidates add up, so that a limit in CPU time would depend on the number of cores.
        cores = 1 if deadline.on_cpu() else available_cores()
        while self.left > 0 and not self._exact():
            room = min(cores, self.size - sum(entrant.racing for entrant in self.entrants))
            while waiting and len(running) < room and (until > self._now() or not self._claiming()):
                running.append(self._start(waiting.pop(0), TRIAL * self.budget))
            if not running:
                break
            self._tell("first runs")
            for entrant in self._heard(running, until):
                running.remove(entrant)
                if entrant.take(0.0).late:
                    self._instead(entrant, waiting)
                self.loading += max(entrant.took - TRIAL * self.budget, 0.0)
        for entrant in running:
            entrant.fate = "it was not ready in time"
            entrant.close()

    def _heard(self, running: list[Entrant], until: float) -> list[Entrant]:
        """Those that have something to say, or the one that has kept silent for too long."""
        oldest = max(running, key=lambda entrant: entrant.waiting_seconds)
        waited = oldest.waiting_seconds
        patience = PATIENCE * (self.left + waited) - waited
        if self._claiming():
            patience = min(until - self._now(), OVERRUN * TRIAL * self.budget + LOADING - waited)
        ready = first_ready([entrant.child for entrant in running if entrant.child is not None], patience)
        return [running[number] for number in ready] or [oldest]

    def _start(self, entrant: Entrant, seconds: float) -> Entrant:
        entrant.start(work_of(self.model, entrant.candidate, self.chains, entrant.seed), seconds)
        return entrant

    def _instead(self, late: Entrant, waiting: list[Entrant]) -> None:
        """Where compiling takes too long for all, the backend without any answers."""
        late.fate = f"not ready after {format_seconds(late.spent)}"
        other = late.candidate.without_compilation()
        if other is not None and not self._claiming():
            waiting.insert(0, Entrant(other, late.seed))
            self.entrants.append(waiting[0])

    def _lengthen(self, entrant: Entrant, share: float) -> None:
        """A longer run, or its only one, in a share of what is left."""
        seconds = share * self.left
        if entrant.child is None:
            self._start(entrant, seconds)
        elif (request := entrant.longer(seconds)) is not None:
            entrant.ask(request)
        else:
            return
        entrant.take(min(OVERRUN * seconds + LATE_SECONDS, self.deadline - self._now() + 2 * LATE_SECONDS))

    def _finish(self) -> None:
        """Who is expected to err least gets what is left, less a share for somebody who may bear it out.

        A fixed point gets no better: what is left then goes to the best of the others, by which it is judged.
        """
        for share in (WITNESS, FINAL, FINAL):
            able = self._claiming() + [each for each in self.entrants if each.runs_once and each.child is None]
            if not able or self.left < TRIAL * self.budget or self._exact():
                return
            errors = [(self._predict_error(each) / np.sqrt(share * self.left), each) for each in able]
            if share == WITNESS:
                errors = self._witnesses(errors)
            if errors:
                error, last = min(errors, key=itemgetter(0))
                self._tell(f"{last.candidate.label} runs, to an error of about {error:.1g}")
                self._lengthen(last, share)

    def _witnesses(self, errors: Sequence[tuple[float, Entrant]]) -> list[tuple[float, Entrant]]:
        """Those of another kind than the best that would see a gross error of it, unless one sees it already."""
        largest, kind = LARGEST[self.target], min(errors, key=itemgetter(0))[1].candidate.kind
        believed = (view for view in self.views() if view.believed and view.kind != kind)
        if any(view.claim is not None and view.claim <= largest**2 for view in believed):
            return []
        return [(error, each) for error, each in errors if each.candidate.kind != kind and error <= largest]

    def _predict_error(self, entrant: Entrant) -> float:
        """Of a run of a second: the portfolio's, with a margin, where there was no first run or it was too short to
        tell."""
        views = self.views()
        view = next((view for view in views if view.candidate is entrant.candidate), None)
        if view is None or view.doubt == brackets.ALONE or "too short" in view.doubt:
            return UNTRIED * entrant.expected
        square = ranking.score(view, views)
        if view.believed and view.standard is not None and view.claim is not None:
            # Error bounds of short runs allow for what a longer one will see, and fall faster than standard errors.
            square += view.standard - view.claim
        return float(np.sqrt(square * (entrant.request.seconds or entrant.took)))


def entrants_of(choice: Choice, seed: int) -> list[Entrant]:
    """Before the start, each with a seed of its own: candidates that began in the same states would bear each other out
    where none of them has met a part of the model."""
    candidates = [*choice.running, *choice.standing_by]
    return [Entrant(each, seed + k, choice.errors.get(each.label, np.inf)) for k, each in enumerate(candidates)]

"""A race: a few candidates run for a while, and the one that `ranking` expects to err least has what is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from spinbench.api.bounds import Bound
from spinbench.foundation import deadline
from spinbench.foundation.child import first_ready
from spinbench.foundation.platforms import available_cores
from spinbench.inference.advising import brackets, ranking
from spinbench.inference.advising.entrant import Entrant, work_of
from spinbench.inference.advising.portfolio import Choice
from spinbench.inference.advising.ranking import Target, View
from spinbench.models import Model

# Share of the budget for the first run of each candidate.
TRIAL = 0.1
# Share of the budget for the first runs of all, loading and compiling included.
TRIALS = 0.4
# Share of the remaining seconds for the first run of one candidate as long as no other has an answer.
PATIENCE = 0.7
# Factor on its seconds, and seconds beside them, that a first run may take where another has an answer.
OVERRUN, LOADING = 1.5, 0.5
# Share of the seconds after the first runs for a witness, a candidate of another kind that may confirm the winner, if
# there is none yet.
WITNESS = 0.3
# Factor on the error that the portfolio expects of a candidate whose first run was too short to tell.
TOO_SHORT = 3.0
# Share of the time remaining at the end that the winner's last run is planned to take.
FINAL = 0.85
# Largest delay of the last run beyond the budget: a share of the budget, at most as many seconds, and these seconds.
# Commands end within a second of their budget.
LATE = 0.2
LATE_SECONDS = 0.5

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

    @property
    def left(self) -> float:
        """Seconds on the clock of budgets."""
        return self.deadline - self._now()

    def run(self) -> None:
        """All of it; the winner is the first of `views` then."""
        try:
            self._try_all()
            self._finish()
        finally:
            for entrant in self.entrants:
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

    def of(self, view: View) -> Entrant:
        """The entrant that says this."""
        return next(entrant for entrant in self.entrants if entrant.candidate is view.candidate)

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

    def _racing(self) -> list[Entrant]:
        return [entrant for entrant in self.entrants if entrant.racing]

    def _claiming(self) -> list[Entrant]:
        """Samplers that race."""
        return [entrant for entrant in self._racing() if entrant.sampler]

    def _exact(self) -> bool:
        return any(view.exact for view in self.views())

    def _try_all(self) -> None:
        """The first run of each, side by side on the processor's cores.

        It goes on for as long as nobody who claims errors has spoken: the answer of others is nothing to judge by.
        """
        until = self._now() + TRIALS * self.left
        waiting, running = list(self.entrants), list[Entrant]()
        # CPU seconds of parallel candidates add up, so that a limit in CPU time would depend on the number of cores.
        cores = 1 if deadline.on_cpu() else available_cores()
        while self.left > 0 and not self._exact():
            while waiting and self._has_room(running, cores) and (until > self._now() or not self._claiming()):
                running.append(self._start(waiting.pop(0)))
            if not running:
                break
            self._tell("first runs")
            for entrant in self._heard(running, until, alone=not waiting):
                running.remove(entrant)
                if entrant.take(0.0).late:
                    self._instead(entrant, waiting)
        for entrant in running:
            entrant.leave("it was not ready in time")
        for entrant in waiting:
            entrant.leave("others were expected to do better, or had the time")

    def _has_room(self, running: Sequence[Entrant], cores: int) -> bool:
        """Whether one more may start."""
        return len(running) < cores and len(running) + len(self._racing()) < self.size

    def _heard(self, running: list[Entrant], until: float, *, alone: bool) -> list[Entrant]:
        """Those that have something to say, or the one that has kept silent for too long."""
        oldest = max(running, key=lambda entrant: entrant.waiting_seconds)
        waited = oldest.waiting_seconds
        patience = self.left
        if self._claiming():
            patience = min(until - self._now(), OVERRUN * TRIAL * self.budget + LOADING - waited)
        elif not alone:
            patience = PATIENCE * (self.left + waited) - waited
        ready = first_ready([entrant.child for entrant in running if entrant.child is not None], patience)
        return [running[number] for number in ready] or [oldest]

    def _start(self, entrant: Entrant) -> Entrant:
        entrant.start(work_of(self.model, entrant.candidate, self.chains, entrant.seed), TRIAL * self.budget)
        return entrant

    def _instead(self, late: Entrant, waiting: list[Entrant]) -> None:
        """Where compiling takes too long for all, the backend without any answers."""
        late.fate = f"not ready after {late.spent:.2g} s"
        other = late.candidate.without_compilation()
        if other is not None and not self._claiming():
            waiting.insert(0, Entrant(other, late.seed))
            self.entrants.append(waiting[0])

    def _lengthen(self, entrant: Entrant, share: float) -> None:
        """A longer run, in a share of what is left."""
        seconds = share * self.left
        if (request := entrant.longer(seconds)) is not None:
            entrant.ask(request)
            entrant.take(min(OVERRUN * seconds, self.left + min(LATE * self.budget, LATE_SECONDS)) + LATE_SECONDS)

    def _finish(self) -> None:
        """The winner so far gets what is left, less a share for somebody who may bear it out.

        A fixed point gets no better: what is left then goes to the best of the others, by which it is judged.
        """
        views = [view for view in self.views() if self.of(view).racing and self.of(view).sampler]
        if self._exact() or not views:
            return
        winner = self.views()[0]
        others = [view for view in views if view.kind != winner.kind and np.isfinite(view.claim or 0.0)]
        if winner.believed and others and not ranking.sharp(self.views(), winner, self.target):
            self._tell(f"{others[0].candidate.label} is asked whether it agrees")
            self._lengthen(self.of(others[0]), WITNESS)
        views = [view for view in self.views() if self.of(view).racing and self.of(view).sampler]
        if self.left > 0 and views:
            last = min(views, key=self._predict_error)
            self._tell(f"{last.candidate.label} runs to the end")
            self._lengthen(self.of(last), FINAL)

    def _predict_error(self, view: View) -> float:
        """Of a longer run: the portfolio's, with a margin, where the first run was too short to tell."""
        if view.doubt == brackets.ALONE or "too short" in view.doubt:
            return TOO_SHORT * self.of(view).expected
        return float(np.sqrt(ranking.score(view, self.views())))


def entrants_of(choice: Choice, seed: int) -> list[Entrant]:
    """Before the start, each with a seed of its own: candidates that began in the same states would bear each other out
    where none of them has met a part of the model."""
    candidates = [*choice.running, *choice.standing_by]
    errors = [choice.errors.get(candidate.label, np.inf) for candidate in candidates]
    return [Entrant(each, seed + k, errors[k]) for k, each in enumerate(candidates)]

"""A race: candidates run in rounds of growing budgets, of which a third stays each time, until one is left.

Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", AISTATS 2016
(successive halving); here the losses are those that `ranking` expects without the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spinbench.api.bounds import Bound
from spinbench.foundation import deadline
from spinbench.foundation.child import first_ready
from spinbench.foundation.platforms import available_cores
from spinbench.inference.advising import ranking
from spinbench.inference.advising.candidates import Candidate
from spinbench.inference.advising.entrant import Entrant, work_of
from spinbench.inference.advising.ranking import Target, View
from spinbench.models import Model

# Share of the remaining seconds for the opening: loading, compiling and the first samples.
OPENING = 0.45
# Share of that time that a single candidate may take.
PATIENCE = 0.5
# A candidate may take at least this many seconds.
LEAST_PATIENCE = 0.5
# Share of the remaining time for longer runs of samplers whose first run gave only a bound. For `wmb` this happens when
# the first draws are unlikely; a second later it has log Z to four digits.
SILENT = 0.3
# Shares of the remaining seconds that the rounds take; the rest is for the winner.
ROUNDS = (0.2, 0.3)
# Share of the candidates that go on to the next round, two at least.
KEPT = 1 / 3
# Share of the remaining time for a witness, a candidate of another kind that may confirm the winner, if there is none
# yet.
WITNESS = 0.5
# Share of the time remaining at the end that the winner's last run is planned to take.
FINAL = 0.9
# Largest delay of the last run beyond the budget: a share of the budget plus a number of seconds.
LATE = 0.1
LATE_SECONDS = 0.2

Watch = Callable[[Sequence[Entrant], str], None]


@dataclass
class Race:
    """Between candidates on a model.

    Attributes:
        model: to be raced on.
        entrants: all that took part, in the order of their start.
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

    @property
    def left(self) -> float:
        """Seconds on the clock of budgets."""
        return self.deadline - self._now()

    def run(self) -> None:
        """All of it; the winner is the first of `views` then."""
        try:
            self._open()
            self._lengthen_silent(SILENT)
            for number, share in enumerate(ROUNDS):
                if not self._exact() and len(self._racing()) > 1:
                    self._round(share, judged=number > 0)
            self._finish()
        finally:
            for entrant in self.entrants:
                entrant.close()

    def views(self) -> list[View]:
        """What the candidates say, in and out of the race, from the best to the worst."""
        views = [view for view in map(self._view, self.entrants) if view is not None]
        if self.target == "log_z":
            views = ranking.reject_outside_bounds(views, self.bounds())
        return ranking.order(views)

    def _view(self, entrant: Entrant) -> View | None:
        """What an entrant says of the target, if that is more than a bound."""
        if entrant.result is None:
            return None
        return ranking.view(entrant.candidate, entrant.result, self.target)

    def bounds(self) -> tuple[Bound, ...]:
        """The tightest of all on log Z."""
        results = [entrant.result for entrant in self.entrants if entrant.result is not None]
        return ranking.tightest(results, self.known_bounds)

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

    def _open(self) -> None:
        """The first run of each, side by side on the processor's cores: most of it is loading and compiling.

        It goes on for as long as nobody who claims errors has spoken: the answer of others is nothing to judge by.
        """
        until = self._now() + OPENING * self.left
        waiting, running = list(self.entrants), list[Entrant]()
        # CPU seconds of parallel candidates add up, so that a limit in CPU time would depend on the number of cores.
        cores = 1 if deadline.on_cpu() else available_cores()
        while (waiting or running) and (self._now() < until or not self._claiming()) and self.left > 0:
            while waiting and len(running) < cores and (until > self._now() or not self._claiming()):
                running.append(self._start(waiting.pop(0)))
            # The last candidate of the opening has just finished.
            if not running:
                break
            self._tell("starting")
            for entrant in self._heard(running, until, alone=not waiting):
                running.remove(entrant)
                if entrant.take(0.0).late:
                    self._instead(entrant, waiting)
        for entrant in running:
            entrant.leave("it was not ready in time")
        for entrant in waiting:
            entrant.leave("the budget was over before its turn")

    def _heard(self, running: list[Entrant], until: float, *, alone: bool) -> list[Entrant]:
        """Those that have something to say, or the one that has kept silent for too long.

        That is half of the opening, or half of what is left as long as no sampler has said anything; who compiles
        nothing then has all of it where nobody else waits.
        """
        oldest = max(running, key=lambda entrant: entrant.waiting_seconds)
        rest = until - self._now()
        if self._claiming():
            patience = min(
                rest, max(PATIENCE * (rest + oldest.waiting_seconds), LEAST_PATIENCE) - oldest.waiting_seconds
            )
        elif oldest.candidate.without_compilation() is None:
            patience = self.left if alone else (self.left - oldest.waiting_seconds) / 2
        else:
            patience = PATIENCE * (self.left + oldest.waiting_seconds) - oldest.waiting_seconds
        ready = first_ready([entrant.child for entrant in running if entrant.child is not None], patience)
        return [running[number] for number in ready] or [oldest]

    def _start(self, entrant: Entrant) -> Entrant:
        work = work_of(self.model, entrant.candidate, self.chains, entrant.seed)
        entrant.start(work, self.model.num_variables)
        return entrant

    def _instead(self, late: Entrant, waiting: list[Entrant]) -> None:
        """Where compiling takes too long for all, the backend without any answers."""
        late.fate = f"not ready after {late.spent:.2g} s"
        other = late.candidate.without_compilation()
        if other is not None and len({entrant.candidate.kind for entrant in self._racing()}) < 2:
            waiting.insert(0, Entrant(other, late.seed))
            self.entrants.append(waiting[0])

    def _lengthen_silent(self, share: float) -> None:
        """Samplers that have no more than a bound yet share so much of what is left: that puts nobody behind."""
        silent = [entrant for entrant in self._claiming() if self._view(entrant) is None]
        until = self.left * (1 - share)
        for number, entrant in enumerate(silent):
            self._tell(f"{entrant.candidate.label} has no more than a bound, and runs again")
            self._lengthen(entrant, (self.left - until) / (len(silent) - number))

    def _round(self, share: float, *, judged: bool) -> None:
        """Longer runs of all, then fewer of them."""
        part = share * self.left / max(sum(entrant.sampler for entrant in self._racing()), 1)
        for entrant in self._racing():
            self._tell(f"{entrant.candidate.label} runs")
            self._lengthen(entrant, part)
        self._drop(judged=judged)

    def _lengthen(self, entrant: Entrant, seconds: float) -> None:
        """Runs of growing length: the first are too short to tell what a long one takes."""
        until = entrant.spent + seconds
        while (request := entrant.longer(until - entrant.spent)) is not None:
            entrant.ask(request)
            entrant.take(min(3 * seconds + 0.3, self.left))

    def _drop(self, *, judged: bool) -> None:
        """All but a third; at least two, of two kinds where there are, and at first all that are merely too short."""
        racing = [view for view in self.views() if self.of(view).racing]
        survivors = racing[: max(2, round(KEPT * len(racing)))]
        if len({view.kind for view in survivors if view.is_sampled}) < 2:
            survivors += [view for view in racing if view.is_sampled and view.kind not in {k.kind for k in survivors}][
                :1
            ]
        if not judged:
            survivors += [view for view in racing if "too short" in view.doubt]
        for entrant in self._racing():
            if all(entrant.candidate is not view.candidate for view in survivors):
                entrant.leave("fell behind")

    def _finish(self) -> None:
        """The winner so far gets what is left, less a share for somebody who may bear it out.

        A fixed point gets no better: what is left then goes to the best of the others, by which it is judged.
        """
        self._lengthen_silent(FINAL)
        racing = [view for view in self.views() if self.of(view).racing]
        if self._exact() or not racing:
            return
        winner = racing[0]
        others = [view for view in racing if view.is_sampled and view.kind != winner.kind]
        if others and not ranking.sharp(self.views(), winner, self.target):
            self._tell(f"{others[0].candidate.label} is asked whether it agrees")
            self._lengthen(self.of(others[0]), WITNESS * self.left)
        samplers = [view for view in self.views() if view.is_sampled and self.of(view).racing]
        if self.left <= 0 or not samplers:
            return
        entrant = self.of(samplers[0])
        self._tell(f"{entrant.candidate.label} runs to the end")
        # repeated if the run before was too short to predict how long one may be
        while (request := entrant.longer(FINAL * self.left)) is not None:
            entrant.ask(request)
            entrant.take(self.left + LATE * self.budget + LATE_SECONDS)


def with_seeds(candidates: Sequence[Candidate], seed: int) -> list[Entrant]:
    """Before the start, each with a seed of its own: candidates that began in the same states would bear each other out
    where none of them has met a part of the model."""
    return [Entrant(candidate, seed + number) for number, candidate in enumerate(candidates)]

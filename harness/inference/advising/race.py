"""A race: candidates run in rounds of growing budgets, of which a third stays each time, until one is left.

Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", AISTATS 2016
(successive halving); here the losses are those that `judging` expects without the truth.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spinbench.api.bounds import Bound
from spinbench.foundation.platforms import available_cores
from spinbench.inference.advising import bounding, judging
from spinbench.inference.advising.candidates import Candidate
from spinbench.inference.advising.contenders import Contender, racing, ready
from spinbench.inference.advising.judging import Target, View
from spinbench.inference.advising.running import Runner
from spinbench.models import Model

OPENING = 0.45
"""Of the seconds that are left: what loading, compiling and the first samples may take,"""
PATIENCE = 0.5
"""of which one candidate may take so much,"""
LEAST_PATIENCE = 0.5
"""or so many seconds."""
ROUNDS = (0.2, 0.3)
"""What the rounds take of the seconds that are left to them; the rest is the winner's."""
KEPT = 1 / 3
WITNESS = 0.5
"""Of what is left then, what somebody gets who may bear the winner out, where nobody does yet."""
FINAL = 0.9
"""Of what is left in the end, what the winner's last run should take."""
LATE = 0.1
"""By how much of the budget the last run may be late, and so many seconds:"""
LATE_SECONDS = 0.2

Watch = Callable[[Sequence[Runner], str], None]


@dataclass
class Race:
    """Between candidates on a model.

    Attributes:
        model: to be raced on.
        runners: all that took part, in the order of their start.
        target: what is judged.
        budget, deadline: seconds in all, and when they are over, of `time.perf_counter`.
        chains: of every run.
        watch: is told of every step.
        known: bounds on log Z that no candidate gave.
    """

    model: Model
    runners: list[Runner]
    target: Target
    budget: float
    deadline: float
    chains: int
    watch: Watch
    known: tuple[Bound, ...] = ()

    @property
    def left(self) -> float:
        """Seconds."""
        return self.deadline - time.perf_counter()

    def run(self) -> None:
        """All of it; the winner is the first of `views` then."""
        try:
            self._open()
            for number, share in enumerate(ROUNDS):
                if not self._exact() and len(self._racing()) > 1:
                    self._round(share, judged=number > 0)
            self._finish()
        finally:
            for runner in self.runners:
                runner.close()

    def views(self) -> list[View]:
        """What the candidates say, in and out of the race, from the best to the worst."""
        found = [judging.view(r.candidate, r.result, self.target) for r in self.runners if r.result is not None]
        told = [view for view in found if view is not None]
        return judging.order(bounding.doubted(told, self.bounds()) if self.target == "log_z" else told)

    def bounds(self) -> tuple[Bound, ...]:
        """The tightest of all on log Z."""
        results = [runner.result for runner in self.runners if runner.result is not None]
        return bounding.tightest(results, self.known)

    def of(self, view: View) -> Runner:
        """The runner that says this."""
        return next(runner for runner in self.runners if runner.candidate is view.candidate)

    def _racing(self) -> list[Runner]:
        return [runner for runner in self.runners if runner.racing and runner.result is not None]

    def _claiming(self) -> list[Runner]:
        """Samplers that race."""
        return [runner for runner in self._racing() if runner.sampler]

    def _exact(self) -> bool:
        return any(view.exact for view in self.views())

    def _open(self) -> None:
        """The first run of each, side by side on the processor's cores: most of it is loading and compiling.

        It goes on for as long as nobody who claims errors has spoken: the answer of others is nothing to judge by.
        """
        until = time.perf_counter() + OPENING * self.left
        waiting, running = list(self.runners), list[Runner]()
        cores = available_cores()
        while (waiting or running) and (time.perf_counter() < until or not self._claiming()) and self.left > 0:
            while waiting and len(running) < cores and (until > time.perf_counter() or not self._claiming()):
                running.append(self._started(waiting.pop(0)))
            if not running:  # the opening ended just now
                break
            self.watch(self.runners, "starting")
            for runner in self._heard(running, until, alone=not waiting):
                running.remove(runner)
                if runner.take(0.0).word == "late":
                    self._instead(runner, waiting)
        for runner in (*running, *waiting):
            runner.leave("it was not ready in time" if runner in running else "the budget was over before its turn")

    def _heard(self, running: list[Runner], until: float, *, alone: bool) -> list[Runner]:
        """Those that have something to say, or the one that has kept silent for too long.

        That is half of the opening, or half of what is left as long as no sampler has said anything; who compiles
        nothing then has all of it where nobody else waits.
        """
        oldest = max(running, key=lambda runner: runner.waited)
        rest = until - time.perf_counter()
        if self._claiming():
            patience = min(rest, max(PATIENCE * (rest + oldest.waited), LEAST_PATIENCE) - oldest.waited)
        elif oldest.candidate.uncompiled() is None:
            patience = self.left if alone else (self.left - oldest.waited) / 2
        else:
            patience = PATIENCE * (self.left + oldest.waited) - oldest.waited
        contenders = {id(runner.contender): runner for runner in running}
        heard = ready([runner.contender for runner in running if runner.contender is not None], patience)
        return [contenders[id(contender)] for contender in heard] or [oldest]

    def _started(self, runner: Runner) -> Runner:
        runner.sampler = runner.candidate.made.stochastic
        runner.contender = Contender(racing(self.model, runner.candidate, self.chains, runner.seed))
        runner.begin(self.model.num_variables)
        return runner

    def _instead(self, late: Runner, waiting: list[Runner]) -> None:
        """Where compiling takes too long for all, the backend without any answers."""
        late.fate = f"not ready after {late.spent:.2g} s"
        other = late.candidate.uncompiled()
        if other is not None and len({runner.candidate.kind for runner in self._racing()}) < 2:
            waiting.insert(0, Runner(other, late.seed))
            self.runners.append(waiting[0])

    def _round(self, share: float, *, judged: bool) -> None:
        """Longer runs of all, then fewer of them."""
        part = share * self.left / max(sum(runner.sampler for runner in self._racing()), 1)
        for runner in self._racing():
            self.watch(self.runners, f"{runner.candidate.label} runs")
            self._lengthen(runner, part)
        self._drop(judged=judged)

    def _lengthen(self, runner: Runner, seconds: float) -> None:
        """Runs of growing length: the first are too short to tell what a long one takes."""
        until = runner.spent + seconds
        while (request := runner.longer(until - runner.spent)) is not None:
            runner.ask(request)
            runner.take(min(3 * seconds + 0.3, self.left))

    def _drop(self, *, judged: bool) -> None:
        """All but a third; at least two, of two kinds where there are, and at first all that are merely too short."""
        racing = [view for view in self.views() if self.of(view).racing]
        kept = racing[: max(2, round(KEPT * len(racing)))]
        if len({view.kind for view in kept if view.sampled}) < 2:
            kept += [view for view in racing if view.sampled and view.kind not in {k.kind for k in kept}][:1]
        if not judged:
            kept += [view for view in racing if "too short" in view.doubt]
        for runner in self._racing():
            if all(runner.candidate is not view.candidate for view in kept):
                runner.leave("fell behind")

    def _finish(self) -> None:
        """The winner so far gets what is left, less a share for somebody who may bear it out.

        A fixed point gets no better: what is left then goes to the best of the others, by which it is judged.
        """
        racing = [view for view in self.views() if self.of(view).racing]
        if self._exact() or not racing:
            return
        winner = racing[0]
        others = [view for view in racing if view.sampled and view.kind != winner.kind]
        if others and not judging.sharp(self.views(), winner, self.target):
            self.watch(self.runners, f"{others[0].candidate.label} is asked whether it agrees")
            self._lengthen(self.of(others[0]), WITNESS * self.left)
        samplers = [view for view in self.views() if view.sampled and self.of(view).racing]
        if self.left <= 0 or not samplers:
            return
        runner = self.of(samplers[0])
        self.watch(self.runners, f"{runner.candidate.label} runs to the end")
        # more than once where the run before was too short to tell how long one may be
        while (request := runner.longer(FINAL * self.left)) is not None:
            runner.ask(request)
            runner.take(self.left + LATE * self.budget + LATE_SECONDS)


def entrants(candidates: Sequence[Candidate], seed: int) -> list[Runner]:
    """Before the start, each with a seed of its own: candidates that began in the same states would bear each other out
    where none of them has met a part of the model."""
    return [Runner(candidate, seed + number) for number, candidate in enumerate(candidates)]

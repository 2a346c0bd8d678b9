"""`spinbench.advise`: from a model and some seconds to an answer and whether to believe it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from spinbench.api.bounds import Bound
from spinbench.errors import SpinbenchError
from spinbench.foundation import deadline, overrides
from spinbench.inference.advising import brackets, ranking
from spinbench.inference.advising.advice import Advice, Entry, conclude, narrow_bracket, python_call, sweep_command
from spinbench.inference.advising.candidates import parse, prepare
from spinbench.inference.advising.entrant import Entrant
from spinbench.inference.advising.exact_and_bounds import answer_exactly, quick_bounds
from spinbench.inference.advising.portfolio import choose, read_table
from spinbench.inference.advising.race import Race, Watch, entrants_of
from spinbench.inference.advising.ranking import TARGETS, Target, View
from spinbench.inference.budget import Budget, check_whole, parse_seconds
from spinbench.inference.notebook.progress import whole
from spinbench.inference.request import check_model
from spinbench.inference.result import Result
from spinbench.models import Model, catalogue


def advise(
    model: Model,
    budget: Budget | str = "10 s",
    target: Target = "marginals",
    candidates: Sequence[object] | None = None,
    seed: int = 0,
    *,
    chains: int = 16,
    source: Mapping[str, object] | None = None,
    watch: Watch = lambda entrants, now: None,
) -> Advice:
    """The best answer to be had within some seconds on this machine, and whether to believe it.

    Exact, if the planner says that it fits; else methods race in processes of their own, and the winner is compared
    with those of other kinds. Loading, compiling and planning count; what is imported for the first time in a process
    does not. An interruption (Ctrl-C) ends the race with the best answer so far, once there is one.

    Args:
        model: any model.
        budget: wall-clock ("10 s") or CPU seconds of all processes ("10 s cpu"), exceeded by a second at most.
        target: what is to be accurate, "marginals" or "log_z".
        candidates: methods by name ("pt", "gibbs.numpy"), or with settings (a `Method`, or ("wmb", {"ibound": 6})), or
            pairs of either and a backend; "exact" is the exact answer. None: the exact answer, the built-in methods of
            a table, and all of plugins.
        seed: of the first candidate's runs; the others have those that follow.
        chains: of every run.
        source: the model's configuration, for `Advice.command`; None: found for shipped models.
        watch: is called with the candidates and a sentence whenever something happens.

    Raises:
        SpinbenchError: a wrong argument; no candidate gave an answer.
    """
    check_model(model)
    seconds, cpu = parse_seconds(budget, "advise")
    if target not in TARGETS:
        raise SpinbenchError(f"target={target!r} was given; marginals and log_z are allowed")
    check_whole("seed", seed, 0)
    check_whole("chains", chains, 1)
    entered, ask_exact = parse(candidates, read_table().methods)
    with whole(f"advice on {model.name}") as say, deadline.budgets_on(cpu=cpu):

        def tell(entrants: Sequence[Entrant], now: str) -> None:
            say(now)
            watch(entrants, now)

        since = deadline.now()
        if source is None:
            source = _source(model)
        why = ""
        known: tuple[Bound, ...] = ()
        # First, since it needs no kernels to be loaded.
        if ask_exact:
            tell([], "looking for an exact answer")
            exact_result, why, known = answer_exactly(model, seconds, target)
            if exact_result is not None:
                return _advice_of_exact(exact_result, target, (seconds, deadline.now() - since), (chains, seed), source)
        choice = choose(model, entered, target)
        tell([], "loading")
        loading = deadline.now()
        prepare(choice.running)
        since += deadline.now() - loading
        if target == "log_z":
            tell([], "looking for bounds on log Z")
            known = (*known, *quick_bounds(model, seed, seconds))
        entrants = entrants_of(choice, seed)
        size = max(sum(not entrant.runs_once for entrant in entrants[: len(choice.running)]), 1)
        race = Race(model, entrants, target, seconds, since + seconds, chains, tell, known, size)
        interrupted = False
        try:
            race.run()
        except KeyboardInterrupt:
            if not race.views():
                raise
            interrupted = True
        return _advice_of_race(race, deadline.now() - since, seed, source, why, interrupted=interrupted)


def _source(model: Model) -> Mapping[str, object]:
    """The configuration of a shipped model; {} for others."""
    if model.name not in catalogue.names() or catalogue.load(model.name).content_hash != model.content_hash:
        return {}
    return {"model": model.name}


def _advice_of_exact(
    exact_result: Result,
    target: Target,
    seconds: tuple[float, float],
    run: tuple[int, int],
    source: Mapping[str, object],
) -> Advice:
    """Args: seconds: allowed and taken; run: chains and seed."""
    call = {**source, "method": "exact", "backend": exact_result.backend}
    return Advice(
        answer=exact_result,
        error=0.0,
        resolved=True,
        verdict="resolved: the answer is exact",
        next="",
        inexact="",
        race=(),
        target=target,
        budget=seconds[0],
        seconds=seconds[1],
        cpu=deadline.on_cpu(),
        chains=run[0],
        seed=run[1],
        python="spinbench.exact(model)",
        command=overrides.command(call) if source else "",
    )


def _advice_of_race(
    race: Race, seconds: float, seed: int, source: Mapping[str, object], why: str, *, interrupted: bool
) -> Advice:
    views = race.views()
    if not views:
        silent = "it says nothing of the marginals"
        fates = {r.candidate.label: r.fate if r.result is None else silent for r in race.entrants[:3]} or {"exact": why}
        reasons = [f"{label}: {fate}" for label, fate in fates.items()]
        reasons += [f"{bound.side} bound on log Z: {bound.value:.8g} ({bound.by})" for bound in race.bounds()]
        raise SpinbenchError(f"no candidate gave an answer within {race.budget:g} s: {'; '.join(reasons)}")
    winner = next(entrant for entrant in race.entrants if entrant.candidate is views[0].candidate)
    assert winner.result is not None
    answer = winner.result
    if race.target == "log_z" and answer.log_z_kind in ("lower", "upper"):
        answer = replace(answer, log_z=float(views[0].values[0]), log_z_kind="estimate", log_z_se=None)
    answer = brackets.attach_bounds(winner.candidate, answer, race.bounds())
    conclusion = conclude(views, race.budget, race.target, narrow_bracket(answer, race.target))
    sentences = [conclusion.sentence]
    if interrupted:
        sentences.append("interrupted")
    place = winner.candidate, winner.request, race.chains, winner.seed
    expected = float(np.sqrt(ranking.score(views[0], views)))
    if race.target == "log_z":
        expected = min(expected, brackets.largest_error(float(views[0].values[0]), answer.bounds))
    return Advice(
        answer=answer,
        error=expected,
        resolved=conclusion.resolved,
        verdict="; ".join(sentences),
        next=conclusion.next,
        inexact=why,
        race=tuple(_entry(entrant, views) for entrant in race.entrants),
        target=race.target,
        budget=race.budget,
        seconds=seconds,
        cpu=deadline.on_cpu(),
        interrupted=interrupted,
        chains=race.chains,
        seed=seed,
        python=python_call(*place),
        command=sweep_command(source, *place) if source else "",
    )


def _entry(entrant: Entrant, views: Sequence[View]) -> Entry:
    view = next((view for view in views if view.candidate is entrant.candidate), None)
    error: float | None = None
    distance: float | None = None
    fate = entrant.fate or "stayed to the end"
    if view is not None:
        if view.claim is not None:
            error = float(np.sqrt(view.claim))
        around = ranking.reference(ranking.witnesses(views, view))
        if around is not None:
            distance = float(np.sqrt(ranking.mean_square(view, around)))
        if view is views[0]:
            fate = "won"
    result = entrant.result
    return Entry(
        candidate=entrant.candidate.label,
        kind=entrant.candidate.kind,
        runs=entrant.rounds,
        seconds=entrant.spent,
        samples=0 if result is None else result.samples,
        status="" if result is None else result.status,
        error=error,
        distance=distance,
        fate=fate,
        method=entrant.candidate.method,
        backend=entrant.candidate.backend,
        settings=entrant.candidate.settings,
        seed=entrant.seed,
        asked=None if result is None else entrant.request,
        result=result,
        failed=entrant.failed and result is None,
    )

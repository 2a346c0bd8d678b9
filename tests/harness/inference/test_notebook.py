"""What a notebook shows of an answer: a line that follows it, a table and a picture; elsewhere nothing is said."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import threading
import time
from html.parser import HTMLParser
from typing import Any

import matplotlib
import matplotlib.pyplot
import numpy as np
import pytest
from fake_notebook import FakeNotebook

import spinbench
from spinbench.api.trace import Trace
from spinbench.errors import BudgetError, SpinbenchError
from spinbench.inference import runner
from spinbench.inference.advising.advice import Entry
from spinbench.inference.engine import ProgramEngine
from spinbench.inference.maximising import annealing
from spinbench.inference.notebook import progress
from spinbench.models import FactorGraph, generators

matplotlib.use("Agg")

GRID = generators.grid(4, 4, seed=1)
TERNARY = FactorGraph.from_log_tables([3, 2], [((0, 1), [[0.3, 0.1], [0.2, -0.4], [0.0, 0.5]])])
ANSWERS: dict[str, Any] = {
    "a sampler": lambda: spinbench.run(GRID, "gibbs", "numpy", 200),
    "many states": lambda: spinbench.run(TERNARY, "gibbs", "numpy", 200),
    "an iteration": lambda: spinbench.run(GRID, "bp", "numpy", 50),
    "an exact answer": lambda: spinbench.exact(GRID, cache=False),
    "bounds": lambda: spinbench.run(generators.grid(3, 3), "wmb", "numpy", 50),
}


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> FakeNotebook:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)  # says something of short runs, too
    monkeypatch.setattr(progress, "EVERY", 0.001)
    return FakeNotebook(monkeypatch)


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that shows is given a turn after each batch, and each part of an annealing."""

    def add_and_wait(*given: Any, **named: Any) -> None:
        add(*given, **named)
        time.sleep(0.01)

    def climb_and_wait(*given: Any) -> Any:
        time.sleep(0.01)
        return climb(*given)

    add, climb = Trace.add, ProgramEngine.temper
    monkeypatch.setattr(Trace, "add", add_and_wait)
    monkeypatch.setattr(ProgramEngine, "temper", climb_and_wait)
    monkeypatch.setattr(annealing, "CALL", 0.0)


@pytest.mark.usefixtures("slowly")
@pytest.mark.parametrize(
    ("options", "on_the_way", "end"),
    [
        pytest.param({"budget": 100}, " of 100, ", "100 samples x 4 chains", id="samples"),
        pytest.param({"budget": "0.3 s"}, r" s of 0\.3 s$", r"[\d,]+ samples x 4 chains", id="seconds"),
        pytest.param({"target": "map"}, " of 2,000, ", "2,002 samples x 4 chains", id="annealing"),
        pytest.param({"target": "map", "method": "pt", "budget": 99}, " of 99, ", "99 samples x 4 chains", id="pt"),
        pytest.param({"target": "map", "method": "exact"}, "getting ready", "1 samples x 1 chains", id="elimination"),
    ],
)
def test_a_run_has_one_line_that_is_updated(
    options: dict[str, Any], on_the_way: str, end: str, notebook: FakeNotebook
) -> None:
    options = {"method": "gibbs", "budget": 2_000, "chains": 4} | options
    spinbench.run(GRID, backend="numpy", **options)
    (line,) = notebook.outputs.values()
    assert re.fullmatch(rf"{options['method']} on numpy: {end}, done after .* s", line)
    assert [one.update for one in notebook.published] == [False] + [True] * (len(notebook.published) - 1)
    if options["method"] != "exact":
        assert sum(re.search(on_the_way, one.text) is not None for one in notebook.published) > 3


def test_short_runs_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 3600.0)
    notebook = FakeNotebook(monkeypatch)
    spinbench.run(GRID, "gibbs", "numpy", 50)
    assert notebook.published == []


def test_runs_of_one_cell_share_its_output_and_the_next_cell_has_its_own(notebook: FakeNotebook) -> None:
    spinbench.run(GRID, "gibbs", "numpy", 50, chains=4)
    spinbench.run(GRID, "bp", "numpy", 50)
    notebook.execution_count += 1
    spinbench.run(GRID, "gibbs", "numpy", 60, chains=4)
    first, second = notebook.outputs.values()
    assert first.startswith("bp on numpy: ")
    assert second.startswith("gibbs on numpy: 60 samples")


def test_nobody_follows_a_run_that_was_given_up(notebook: FakeNotebook, monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(*given: object, **more: object) -> None:
        raise BudgetError("too short")

    monkeypatch.setattr(runner.driver, "drive", give_up)
    with pytest.raises(BudgetError, match="too short"):
        spinbench.run(GRID, "gibbs", "numpy", 50)
    assert progress.THREAD not in [thread.name for thread in threading.enumerate()]
    assert not any("done" in one.text for one in notebook.published)


@pytest.mark.parametrize(
    ("call", "who"),
    [
        # both end at once: exact
        (lambda: spinbench.bracket(GRID, "30 s"), "bracket of grid"),
        (lambda: spinbench.advise(GRID, "30 s", candidates=["exact"]), "advice on grid"),
    ],
)
def test_an_answer_speaks_for_the_runs_that_it_takes(call: Any, who: str, notebook: FakeNotebook) -> None:
    call()
    (line,) = notebook.outputs.values()
    assert line.startswith(f"{who}: done after ")
    assert all(one.text.startswith(f"{who}: ") for one in notebook.published)
    assert any("exact" in one.text for one in notebook.published)


def test_ipython_in_a_terminal_stays_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    terminal = FakeNotebook(monkeypatch, kernel=False)
    spinbench.run(GRID, "gibbs", "numpy", 50)
    assert terminal.published == []
    assert capsys.readouterr() == ("", "")


def test_a_script_prints_nothing_and_loads_no_ipython() -> None:
    source = """
import sys, spinbench
from spinbench.inference.notebook import progress
from spinbench.models import generators
progress.PATIENCE = 0.0
spinbench.run(generators.grid(4, 4), "gibbs", "numpy", 50)
sys.exit("IPython" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


class Cells(HTMLParser):
    """The texts of a page's cells; refuses tags that are not closed in turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize("kind", ANSWERS)
def test_the_tables_hold_what_was_found(kind: str) -> None:
    found = ANSWERS[kind]()
    texts = Cells(found._repr_html_()).texts
    assert found.status in texts
    assert any(text.startswith(f"{found.log_z:.8g}") for text in texts)
    columns = found.columns()
    for p in columns["marginal"][:20]:
        assert any(text.startswith(f"{p:.6g}") for text in texts)
    more = len(found.marginals) - 10
    assert (f"and {more} variables more: result.to_dataframe()" in texts) == (more > 0)


def test_advice_shows_its_verdict_its_answer_and_its_race() -> None:
    exact = spinbench.advise(generators.grid(3, 3))
    entry = Entry("bp.<numba>", "messages", 2, 0.5, 9, "ok", 0.1, None, "won", "bp", "numba", {}, 0, None, None, False)
    advice = dataclasses.replace(exact, race=(entry, dataclasses.replace(entry, candidate="pt.numba", runs=0)))
    texts = Cells(advice._repr_html_()).texts
    assert {f"{advice.verdict} ({advice.level})", advice.python, advice.answer.status, entry.candidate} <= set(texts)
    assert "pt.numba" not in texts
    assert "candidate" not in Cells(exact._repr_html_()).texts


def test_a_bracket_shows_its_sentences() -> None:
    interval = spinbench.bracket(generators.grid(3, 3), "10 s")
    assert set(interval.sentences()) <= set(Cells(interval._repr_html_()).texts)


def test_names_are_no_markup() -> None:
    found = dataclasses.replace(ANSWERS["many states"](), model="<script>alert(1)</script>", notes=("<b>",))
    page = found._repr_html_()
    assert "<script>" not in page
    assert "<b>" not in page


@pytest.mark.parametrize("kind", ANSWERS)
def test_the_picture_shows_marginals_and_log_z(kind: str) -> None:
    # Those of other tests.
    matplotlib.pyplot.close("all")
    found = ANSWERS[kind]()
    drawn = found.plot()
    panels = {axes.get_ylabel(): axes for axes in drawn}
    shown = panels["p(s = 1)" if isinstance(found.marginals, np.ndarray) else "p of each state"].lines[0].get_ydata()
    expected = found.marginals if isinstance(found.marginals, np.ndarray) else np.concatenate(found.marginals)
    np.testing.assert_array_equal(shown, expected)
    if found.trajectory:
        assert panels["log Z"].lines[0].get_ydata()[-1] == found.log_z
        assert len(panels["log Z"].lines) == 1 + sum(np.isfinite(bound.value) for bound in found.bounds)
    assert matplotlib.pyplot.get_fignums() == [drawn[0].figure.number], "what a notebook shows, once"
    matplotlib.pyplot.close(drawn[0].figure)


@pytest.mark.parametrize("method", ["gibbs", "exact"])
def test_a_heaviest_state_is_told_and_no_log_z(method: str) -> None:
    found = spinbench.run(GRID, method, "numpy", 200, target="map")
    assert f"heaviest state of log weight {found.best_log_weight:.6g}, " in repr(found)
    assert "log Z" not in repr(found)
    texts = Cells(found._repr_html_()).texts
    assert f"{found.best_log_weight:.8g}" in texts
    assert not any("log Z" in text for text in texts)
    states = texts[texts.index("heaviest state") + 1 :][: 2 * 10]
    assert [int(text) for text in states[1::2]] == found.best_state[:10].tolist()
    assert "and 6 variables more: result.best_state" in texts


def test_what_is_not_known_is_not_an_estimate() -> None:
    assert ": no log Z, 50 samples" in repr(spinbench.run(generators.grid(3, 3), "gibbs", "numpy", 50, log_z="none"))


def test_an_answer_of_nothing_is_refused_in_a_sentence() -> None:
    found = dataclasses.replace(ANSWERS["an iteration"](), marginals=None, trajectory=())
    with pytest.raises(SpinbenchError, match="bp gives neither marginals nor log Z; there is nothing to draw"):
        found.plot()

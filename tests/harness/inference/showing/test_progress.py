"""One line below a notebook's cell follows an answer; elsewhere nothing is said."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from fake_notebook import FakeNotebook

import spinbench
from spinbench.api.trace import Trace
from spinbench.errors import BudgetError
from spinbench.inference import runner
from spinbench.inference.engine import ProgramEngine
from spinbench.inference.maximising import annealing
from spinbench.inference.showing import cell_output, progress
from spinbench.models import generators

GRID = generators.grid(4, 4, seed=1)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> FakeNotebook:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)  # says something of short runs, too
    monkeypatch.setattr(cell_output, "EVERY", 0.001)
    return FakeNotebook(monkeypatch)


def test_a_run_has_one_line_that_is_updated(notebook: FakeNotebook, monkeypatch: pytest.MonkeyPatch) -> None:
    add = Trace.add

    def add_and_wait(*given: Any) -> None:  # the thread that shows is given a turn
        add(*given)
        time.sleep(0.05)

    monkeypatch.setattr(Trace, "add", add_and_wait)
    spinbench.run(GRID, "gibbs", "numpy", 2_000, chains=4)
    (line,) = notebook.outputs.values()
    assert line.startswith("gibbs on numpy: 2,000 samples x 4 chains, done after ")
    assert [one.update for one in notebook.published] == [False] + [True] * (len(notebook.published) - 1)
    assert len(notebook.published) > 2
    assert any(" of 2,000, " in one.text for one in notebook.published)


def test_a_budget_in_seconds_is_counted_down(notebook: FakeNotebook) -> None:
    spinbench.run(GRID, "gibbs", "numpy", "0.5 s", chains=4)
    assert any(one.text.endswith(" s of 0.5 s") for one in notebook.published)


@pytest.mark.parametrize("method", ["gibbs", "pt", "exact"])
def test_the_search_for_a_heaviest_state_is_followed(method: str, notebook: FakeNotebook) -> None:
    spinbench.run(GRID, method, "numpy", 2_000, chains=4, target="map")
    (line,) = notebook.outputs.values()
    assert re.fullmatch(rf"{method} on numpy: [\d,]+ samples x [14] chains, done after .* s", line)


def test_a_single_annealing_is_told_of_while_it_goes_on(
    notebook: FakeNotebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(annealing, "CALL", 0.0)
    climb = ProgramEngine.climb

    def climb_and_wait(*given: Any) -> Any:  # the thread that shows is given a turn
        time.sleep(0.01)
        return climb(*given)

    monkeypatch.setattr(ProgramEngine, "climb", climb_and_wait)
    spinbench.run(GRID, "gibbs", "numpy", 2_000, chains=4, target="map")
    assert sum(" of 2,000, " in one.text for one in notebook.published) > 3


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

    monkeypatch.setattr(runner, "drive", give_up)
    with pytest.raises(BudgetError, match="too short"):
        spinbench.run(GRID, "gibbs", "numpy", 50)
    assert progress.THREAD not in [thread.name for thread in threading.enumerate()]
    assert not any("done" in one.text for one in notebook.published)


def test_a_bracket_speaks_for_the_runs_that_it_takes(notebook: FakeNotebook) -> None:
    spinbench.bracket(GRID, "5 s")  # ends at once: exact
    (line,) = notebook.outputs.values()
    assert line.startswith("bracket of grid: done after ")
    assert all(one.text.startswith("bracket of grid: ") for one in notebook.published)
    assert any("exact" in one.text for one in notebook.published)


def test_an_advice_speaks_for_the_runs_that_it_takes(notebook: FakeNotebook) -> None:
    spinbench.advise(GRID, "5 s", candidates=["exact"])
    (line,) = notebook.outputs.values()
    assert line.startswith("advice on grid: done after ")
    assert all(one.text.startswith("advice on grid: ") for one in notebook.published)


def test_ipython_in_a_terminal_stays_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    terminal = FakeNotebook(monkeypatch, kernel=False)
    spinbench.run(GRID, "gibbs", "numpy", 50)
    assert terminal.published == []
    assert capsys.readouterr() == ("", "")


def test_a_script_prints_nothing_and_loads_no_ipython() -> None:
    source = """
import sys, spinbench
from spinbench.inference.showing import progress
from spinbench.models import generators
progress.PATIENCE = 0.0
spinbench.run(generators.grid(4, 4), "gibbs", "numpy", 50)
sys.exit("IPython" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

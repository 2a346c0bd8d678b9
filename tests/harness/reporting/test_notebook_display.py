"""A sweep has one output below a notebook's cell: the newest cells and the bar, and the leaderboard in the end."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_notebook import FakeNotebook
from rich.text import Text
from small_sweeps import QUICK

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.inference.notebook import progress
from spinbench.reporting import progress_display


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> FakeNotebook:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    return FakeNotebook(monkeypatch)


def test_many_cells_make_one_short_output(notebook: FakeNotebook) -> None:
    with progress_display.Display(progress_display.console(), 60) as shown:
        for cell in range(60):
            shown.start_cell(f"cell {cell}")
            shown.finish_cell(f"cell {cell}", None)
    assert len({one.name for one in notebook.published}) == 1
    assert len(notebook.published) > 60
    assert max(one.text.count("\n") for one in notebook.published) == progress_display.LAST_LINES
    late = notebook.published[-2].text
    assert "[60/60] cell 59: measured before" in late
    assert "60/60 0:00:0" in late
    assert list(notebook.outputs.values()) == [""]


def test_what_is_printed_stays_in_colour(notebook: FakeNotebook) -> None:
    output = progress_display.console()
    output.print("[bold]no markup & 1 < 2[/bold]")
    output.print(Text("red", style="red"))
    with progress_display.Display(output, 1) as shown:
        shown.start_cell("cell")
    progress_display.console().print("after")
    last = notebook.published[-1]
    assert last.text == "[bold]no markup & 1 < 2[/bold]\nred\nafter"
    assert "1 &lt; 2" in last.html
    assert '<span style="color: #800000' in last.html
    assert len(notebook.outputs) == 1


def test_a_sweep_from_python_ends_with_its_leaderboard(
    notebook: FakeNotebook, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = spinbench.sweep("method=gibbs", *QUICK[1:], "seed=0,1", f"sweep_dir={tmp_path / 'sweep'}")
    assert folder == tmp_path / "sweep"
    assert len(list((folder / "records").glob("record-*.json"))) == 2
    (text,) = notebook.outputs.values()
    assert text.startswith("2 cells into ")
    assert "gibbs  numpy" in text
    assert "[1/2]" not in text
    assert any("[1/2] gibbs on numpy" in one.text for one in notebook.published)
    assert capfd.readouterr().out == ""


def test_outside_of_a_notebook_each_cell_has_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_display.Display(progress_display.console(), 2) as shown:
        for cell in range(2):
            shown.start_cell(f"cell {cell}")
            shown.finish_cell(f"cell {cell}", None)
    assert capsys.readouterr().out == "[1/2] cell 0: measured before\n[2/2] cell 1: measured before\n"


@pytest.mark.parametrize("word", ["--resume", "-m", "commits=main"])
def test_flags_and_commits_belong_to_the_command(word: str) -> None:
    with pytest.raises(SpinbenchError, match=f"'{word}' was given; spinbench.sweep takes settings"):
        spinbench.sweep("method=gibbs", word)

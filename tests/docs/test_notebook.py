"""The example notebook is committed as it was written, runs, and becomes a page of the site with its outputs."""

from __future__ import annotations

import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

import nbformat
import pytest
from markdown_blocks import DOCS

SWEEP = """
from spinbench.reporting import progress_display

with progress_display.Display(progress_display.console(), 100) as shown:
    for cell in range(100):
        shown.start_cell(f"cell {cell}")
        shown.finish_cell(f"cell {cell}", None)
progress_display.console().print("the leaderboard")
"""
RUN = """
from spinbench.inference.notebook import progress

progress.PATIENCE = 0.0
again = spinbench.run(model, "bp", budget=100)
"""
PICTURE = "gibbs.plot()"


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    spec = spec_from_file_location("notebook_page", DOCS / "hooks" / "notebook_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def executed(pages: ModuleType) -> Any:
    """With more cells: of a sweep of a hundred, of a run that is too short to be told of, and of a picture that is also
    the cell's value."""
    notebook = nbformat.read(pages.NOTEBOOK, as_version=4)
    notebook.cells += [nbformat.v4.new_code_cell(source) for source in (SWEEP, RUN, PICTURE)]
    return pages.executed(notebook)


def test_it_is_committed_without_outputs(pages: ModuleType) -> None:
    cells = json.loads(pages.NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def test_its_cells_say_what_the_text_around_them_says(executed: Any) -> None:
    _, gibbs, bp, errors, picture, bracket = [_outputs(cell) for cell in _code(executed)[:-3]]
    assert "<th>log Z</th>" in gibbs[-1]["text/html"]
    assert "'ok'" in bp[-1]["text/plain"]
    off = [float(number) for number in re.findall(r"marginals off by (\S+),", errors[0]["text/plain"])]
    assert len(off) == 2
    assert max(off) < 1e-3  # what belief propagation is off by on this model: 8.9e-5, whatever the machine
    assert "image/png" in picture[0]
    assert "exact (exact)" in bracket[-1]["text/plain"]


def test_a_sweep_is_one_output_of_a_real_kernel(executed: Any) -> None:
    (output,) = _outputs(_code(executed)[-3])
    assert output["text/plain"] == "the leaderboard"


def test_a_run_is_one_line_of_a_real_kernel(executed: Any) -> None:
    (output,) = _outputs(_code(executed)[-2])
    assert re.fullmatch(r"bp on numba: \d+ samples x \d+ chains, done after \d+\.\d s", output["text/plain"])


def test_a_picture_is_shown_once(executed: Any) -> None:
    shown = [output for output in _outputs(_code(executed)[-1]) if "image/png" in output]
    assert len(shown) == 1


def test_the_page_has_outputs_and_pictures(pages: ModuleType, executed: Any) -> None:
    files = pages.rendered(executed)
    page = files.pop("example.md")
    assert page.startswith("# spinbench in a notebook\n")
    assert re.findall(r"!\[.*\]\((.+)\)", page) == list(files) == ["example-1.png", "example-2.png"]
    assert files["example-1.png"].startswith(b"\x89PNG")
    assert "```text\ngibbs  marginals off by " in page
    assert '<div class="output"><table><caption>gibbs on numba' in page


def _code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _outputs(cell: Any) -> list[dict[str, str]]:
    return [output.data if "data" in output else {"text/plain": output.text} for output in cell.outputs]

"""What notebooks show of an answer."""

from __future__ import annotations

import dataclasses
from html.parser import HTMLParser
from typing import Any

import matplotlib
import numpy as np
import pytest

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.models import FactorGraph, generators

matplotlib.use("Agg")

TERNARY = FactorGraph.from_log_tables([3, 2], [((0, 1), [[0.3, 0.1], [0.2, -0.4], [0.0, 0.5]])])
ANSWERS: dict[str, Any] = {
    "a sampler": lambda: spinbench.run(generators.grid(4, 4), "gibbs", "numpy", 200),
    "many states": lambda: spinbench.run(TERNARY, "gibbs", "numpy", 200),
    "an iteration": lambda: spinbench.run(generators.grid(4, 4), "bp", "numpy", 50),
    "an exact answer": lambda: spinbench.exact(generators.grid(4, 4), cache=False),
    "bounds": lambda: spinbench.run(generators.grid(3, 3), "wmb", "numpy", 50),
}


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


def test_names_are_no_markup() -> None:
    found = dataclasses.replace(ANSWERS["many states"](), model="<script>alert(1)</script>", notes=("<b>",))
    page = found._repr_html_()
    assert "<script>" not in page
    assert "<b>" not in page


@pytest.mark.parametrize("kind", ANSWERS)
def test_the_picture_shows_marginals_and_log_z(kind: str) -> None:
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
    found = spinbench.run(generators.grid(4, 4), method, "numpy", 200, target="map")
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

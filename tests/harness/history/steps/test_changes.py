"""asv's site has a page with the commits that changed something, beyond noise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from spinbench.errors import HistoryError
from spinbench.history.publish import publish
from spinbench.reporting.past import changes


def test_published_page_names_the_commits_and_no_other(project: Any, planted: Any, browser: Any) -> None:
    index = publish(project.root)
    assert f'<a href="{changes.PAGE}">' in index.read_text()
    browser.open((index.parent / changes.PAGE).as_uri())
    rows = browser.evaluate("Array.from(document.querySelectorAll('table.sortable tbody tr'), row => row.innerText)")
    assert {re.search(r"\b[0-9a-f]{8}\b", row)[0] for row in rows} == {planted.slow[:8], planted.wrong[:8]}  # type: ignore[index]
    assert all(row.startswith("worse") for row in rows)
    assert browser.evaluate("document.querySelectorAll('tbody tr:first-child circle').length") == 11
    said = browser.evaluate("document.body.innerText")
    assert said.count("on testbox: ") == 1
    assert f"{len(rows)} of {len(rows)} rows" in said


def test_a_page_that_is_not_asvs_is_refused(project: Any, planted: Any, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<nav></nav>")
    with pytest.raises(HistoryError, match=r"has no place for a link to changes\.html"):
        changes.write(project.root, tmp_path)
    assert not (tmp_path / changes.PAGE).exists()

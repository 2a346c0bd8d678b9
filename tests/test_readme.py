"""The README's example runs as printed, and its links lead somewhere."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_runs_and_prints_what_its_comment_says() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    lines = printed.getvalue().splitlines()
    assert float(lines[0]) == pytest.approx(-23.6872070585, rel=1e-9)
    log_z, error, kind = float(lines[1].split()[0]), float(lines[1].split()[2]), lines[1].split()[3]
    assert kind == "estimate"
    assert abs(log_z + 23.6872070585) < 5 * error


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", README)) - {""}))
def test_links_lead_somewhere(target: str) -> None:
    assert target.startswith("https://") or (ROOT / target).exists()

"""Tables become frames of the library that is asked for, or there is a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from spinbench.errors import SpinbenchError, UnavailableError
from spinbench.foundation import frames
from spinbench.foundation.frames import columns_of, frame

TABLE: list[dict[str, Any]] = [{"a": 1, "b": "x"}, {"a": 2.5, "b": 3}, {"a": None, "c": True}]


def test_columns_are_of_one_kind_each() -> None:
    assert columns_of(TABLE) == {"a": [1.0, 2.5, None], "b": ["x", "3", None], "c": [None, None, True]}
    assert columns_of([]) == {}


@pytest.mark.parametrize("kind", frames.KINDS)
def test_frames_hold_the_columns(kind: Any) -> None:
    pytest.importorskip(frames.KINDS[kind])
    found = frame(columns_of(TABLE), kind)
    assert len(found) == 3
    values = found["a"].to_pylist() if kind == "arrow" else list(found["a"])
    assert values[:2] == [1.0, 2.5]
    assert list(found.column_names if kind == "arrow" else found.columns) == ["a", "b", "c"]


def test_other_kinds_and_missing_packages_have_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpinbenchError, match=r"kind='excel' was given; pandas, polars, arrow are allowed"):
        frame({}, "excel")  # type: ignore[arg-type]
    monkeypatch.setattr(frames, "find_spec", lambda name: None)
    with pytest.raises(UnavailableError, match="polars is not installed; pip install polars"):
        frame({}, "polars")

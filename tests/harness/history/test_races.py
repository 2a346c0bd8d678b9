"""Races leave records that stand in the history like a sweep's, and that can be run again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_records import whole

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.history.recorder import History, record
from spinbench.history.series import identify
from spinbench.inference.advising.advice import Advice, Entry
from spinbench.inference.budget import Budget
from spinbench.measuring.races import RaceRecorder
from spinbench.measuring.records import read_records
from spinbench.models import specs
from spinbench.reporting import leaderboard, replay

RING = {"model": "ring", "model.n": 7}


def entry(method: str, samples: int | None, **changes: Any) -> Entry:
    """What a race tells of a candidate that was asked so many samples last; None: it gave no answer."""
    asked = None if samples is None else Budget(samples=samples, burn_in=5)
    model = specs.build({"name": "ring", "n": 7})
    result = None if asked is None else spinbench.run(model, method, "numpy", asked, chains=4, seed=3, checkpoints=1)
    told: dict[str, Any] = {
        "candidate": f"{method}.numpy", "kind": method, "runs": 2, "seconds": 1.5, "samples": samples or 0,
        "status": "ok", "error": 0.1, "distance": None, "fate": "won", "method": method, "backend": "numpy",
        "settings": {}, "seed": 3, "asked": asked, "result": result, "failed": False,
    }  # fmt: skip
    return Entry(**{**told, **changes})


def advice(*race: Entry) -> Advice:
    answer = next(one.result for one in race if one.result is not None)
    return Advice(
        answer, 0.1, True, "resolved", "", "", race, "marginals", 6.0, 5.5, chains=4, seed=3, python="", command=""
    )


@pytest.fixture
def raced(project: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("SPINBENCH_HISTORY", str(project.root))
    return project


def test_races_at_two_commits_are_one_series_apart_from_sweeps(raced: Any) -> None:
    found = []
    for number, samples in enumerate((40, 70)):
        commit = raced.commit(f"commit {number}")
        occasion = RaceRecorder.begin(raced.root / "multirun" / commit, RING)
        late = entry("pt", None, status="", error=None, fate="not ready after 3 s")
        assert len(occasion.write(advice(entry("gibbs", samples), late))) == 2
        report = record(raced.root, [occasion.folder])
        assert (report.new, report.refused) == (1, ())
        found += History.open(raced.root).journal.read_entries(commit)
    assert [one["series"]["parts"] for one in found] == [["gibbs", "numpy", "chains=4 seconds=6 race=marginals"]] * 2
    assert identify(whole(found[0])) == identify(whole(found[1]))
    assert [one["result"]["samples"] for one in found] == [40, 70]
    swept = {**found[0]["config"], "budget": {"seconds": 6.0, "samples": None, "burn_in": None}}
    assert identify(whole({**found[0], "config": swept})).parts[2] == "chains=4 seconds=6"


def test_what_came_of_a_candidate_is_its_status(tmp_path: Path) -> None:
    broken = entry("mf", None, fate="TypeError: no", failed=True)
    late = entry("pt", None, fate="not ready after 3 s")
    RaceRecorder.begin(tmp_path, RING).write(advice(entry("gibbs", 40), broken, late))
    found = {one["axes"]["method"]: one for one in read_records(tmp_path)}
    assert {name: (one["status"], one["error"]) for name, one in found.items()} == {
        "gibbs": ("ok", None),
        "mf": ("failed", "TypeError: no"),
        "pt": ("skipped", "not ready after 3 s"),
    }
    rows = {row.method: row for row in leaderboard.rows(found.values())}
    assert set(rows) == {"gibbs", "mf"}
    assert rows["gibbs"].status.endswith("no exact answer")
    with pytest.raises(SpinbenchError, match="gave no answer in its race"):
        replay.rerun(found["pt"])


def test_a_record_of_a_race_is_run_again_bit_for_bit(tmp_path: Path) -> None:
    RaceRecorder.begin(tmp_path, RING).write(advice(entry("gibbs", 40)))
    (then,) = read_records(tmp_path)
    done = replay.rerun(then)
    assert done.verdict().startswith("reproduced: all")
    assert {"samples": 40, "seconds": None, "burn_in": 5}.items() <= done.repeated["config"]["budget"].items()


def test_a_file_that_changes_during_the_race_leaves_no_record(tmp_path: Path) -> None:
    path = tmp_path / "my.uai"
    spinbench.save(specs.build({"name": "ring", "n": 7}), path)
    occasion = RaceRecorder.begin(tmp_path / "kept", {"model": "file", "model.path": str(path)})
    path.write_text(path.read_text() + "\n")
    with pytest.raises(SpinbenchError, match="changed during the race"):
        occasion.write(advice(entry("gibbs", 40)))
    exact = replace(advice(entry("gibbs", 40)), race=())
    assert RaceRecorder.begin(tmp_path / "kept", RING).write(exact) == []

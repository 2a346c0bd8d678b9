"""The record of a race: one for each candidate, of the race's budget, so that races at other commits are comparable."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinbench.errors import SpinbenchError
from spinbench.foundation import git
from spinbench.inference import registry
from spinbench.inference.advising.advice import Advice, Entry
from spinbench.measuring import environment, measure, provenance, result_metrics
from spinbench.measuring.process_state import failure_answer
from spinbench.measuring.records import Content, RecordError, file_hashes, plain, write_record
from spinbench.models import families
from spinbench.models.families import FILE

FAMILY = "race"


@dataclass(frozen=True)
class RaceRecorder:
    """Of a race that is about to begin.

    Attributes:
        folder: where its records go, as a sweep's.
        model: its configuration, {"name": "grid", "rows": 10, …}.
        files: hashes of its files.
        git: state of the code.
        started: Unix time.
    """

    folder: Path
    model: Mapping[str, Any]
    files: Mapping[str, str | None]
    git: Mapping[str, Any]
    started: int

    @classmethod
    def begin(cls, folder: Path, source: Mapping[str, object]) -> RaceRecorder:
        """Makes the folder.

        Args:
            folder: for records.
            source: the model, as overrides of a sweep: {"model": "file", "model.path": "my.uai"}.

        Raises:
            RecordError: the folder cannot be written.
        """
        try:
            (folder / "records").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RecordError(f"the folder {folder} cannot be written: {error.strerror or error}") from error
        if (history := environment.history_root()) is not None:
            git.note_versions(history, provenance.plugin_states())
        model = _model_config(source)
        return cls(folder, model, file_hashes(model), environment.code_state(), int(time.time()))

    def write(self, advice: Advice) -> list[Path]:
        """The records of all candidates; none where the answer was exact, since nothing raced.

        Raises:
            RecordError: a file of the model changed meanwhile, or the folder cannot be written.
        """
        if file_hashes(self.model) != self.files:
            raise RecordError("a file of the model changed during the race, which leaves no record; race again")
        git = environment.code_state_since(self.git)
        return [write_record(self.folder, self._record(advice, entry, git)) for entry in advice.race]

    def _record(self, advice: Advice, entry: Entry, git: Mapping[str, object]) -> Content:
        cell = {
            "model": dict(self.model),
            "method": {"name": entry.method, **_method_settings(entry)},
            "backend": {"name": entry.backend, "device": "cpu", "precision": "float64"},
            "budget": {
                **{"seconds": advice.budget, "samples": None, "burn_in": None, "race": advice.target},
                **({"cpu": True} if advice.cpu else {}),
            },
            "chains": advice.chains,
            "seed": entry.seed,
        }
        raced = {
            "asked": entry.asked and dataclasses.asdict(entry.asked),
            **{name: getattr(entry, name) for name in ("runs", "seconds", "error", "distance", "fate")},
            "verdict": advice.verdict,
            "command": advice.command,
        }
        content: Content = plain(
            {
                **measure.record_header(cell, git, provenance.foreign_plugins(cell), self.files),
                "family": FAMILY,
                "class": None,
                **_answer_from_entry(entry, advice.inexact or "the race was not asked for an exact answer"),
                "race": raced,
                "environment": environment.describe(),
                "started_at": self.started,
                "duration": entry.seconds,
            }
        )
        return content


def _model_config(source: Mapping[str, Any]) -> dict[str, Any]:
    name = source["model"]
    usual = {"path": None, "evidence": None, "beta": None}
    if name != FILE:
        usual = families.parameter_defaults(name)
    parameters = {key.removeprefix("model."): value for key, value in source.items() if key != "model"}
    return {"name": name, **usual, **parameters}


def _method_settings(entry: Entry) -> Mapping[str, object]:
    """All of the method's, as in a sweep's records; those that were given where it does not run here."""
    try:
        method = registry.make_method(entry.method, dict(entry.settings))
    except SpinbenchError:
        return entry.settings
    settings: dict[str, object] = dataclasses.asdict(method)  # type: ignore[call-overload]
    return settings


def _answer_from_entry(entry: Entry, inexact: str) -> dict[str, object]:
    """Without compile seconds, of which a race does not know whether anything was compiled."""
    if entry.result is None:
        answer = failure_answer(entry.fate)
        if entry.failed:
            return answer
        return {**answer, "status": "skipped", "metrics": {}}
    reference = {"reason": inexact}
    metrics, spread = result_metrics.result_metrics(entry.result, None, reference)
    del metrics["compile_seconds"]
    summary = result_metrics.summarize_result(entry.result, None)
    return {
        "status": "ok",
        "error": None,
        "traceback": None,
        "metrics": metrics,
        "result": {**summary, "marginal_rmse_se": spread, "compilation": "unknown", "load": None},
        "reference": reference,
        "oversubscribed": None,
        "stages": {},
    }

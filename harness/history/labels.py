"""What a record measured, as the labels of a series and as the configuration that they stand for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinbench.conf import searchpath
from spinbench.errors import HistoryError, SpinbenchError
from spinbench.history import axes
from spinbench.history.journal import Record, settings
from spinbench.measuring.records import digest, model_label, plain

LONGEST = 40
"""Characters of a setting's value; of a longer one its hash stands in the label."""
SHOWN = 8
"""Digits of a file's hash."""


@dataclass(frozen=True)
class Identity:
    """Of a series.

    Attributes:
        model: its label; own files by name and content, "mine.uai@1a2b3c4d".
        parts: method, backend and run with what differs from the defaults, "dhmc(form=sparse)", "numba", "chains=4".
        config: all that was measured but for the seed, with hashes in the place of paths.
    """

    model: str
    parts: tuple[str, str, str]
    config: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """Equal for records of the same configuration and contents."""
        return digest(self.config)


def identity(record: Record) -> Identity:
    """What a record belongs to.

    Raises:
        HistoryError: it does not say what its own files held, or its method is not installed here.
    """
    config = measured(record)
    return Identity(_model(config["model"], record), _parts(config), config)


def measured(record: Record) -> dict[str, Any]:
    """All that was measured but for the seed, with hashes in the place of paths.

    Raises:
        HistoryError: the record does not say what its own files held.
    """
    config = settings(record)
    return {**config, "model": _without_paths(config["model"], record.get("files"))}


def named(record: Record) -> str:
    """The cell for people."""
    return " ".join(str(value) for value in record["axes"].values())


def _without_paths(model: Mapping[str, Any], files: Mapping[str, str | None] | None) -> dict[str, Any]:
    found = dict(model)
    for name in ("path", "evidence", "corpus"):
        if model.get(name) is not None:
            content = (files or {}).get(name)
            if content is None:
                raise HistoryError("do not say what their own files held; sweep again")
            found[name] = f"{Path(model[name]).name}@{content[:SHOWN]}"
    return found


def _model(model: Mapping[str, Any], record: Record) -> str:
    if model["name"] == "file":
        return _label(model_label(model), {"beta": model.get("beta")}, {})
    return model_label(model) if model.get("corpus") is not None else str(record["axes"]["model"])


def _parts(config: Mapping[str, Any]) -> tuple[str, str, str]:
    method, backend = config["method"], config["backend"]
    try:
        defaults = plain(searchpath.method_defaults(method["name"]))
    except SpinbenchError as error:
        raise HistoryError(f"have the method {method['name']}, whose defaults are not known here") from error
    usual = axes.run_defaults()
    # seconds are null where samples are given, and the other way round
    budget = {key: value for key, value in config["budget"].items() if value is not None}
    run = _differing({"chains": config["chains"]}, usual) + _differing(budget, usual["budget"])
    return (
        _label(method["name"], method, defaults),
        _label(backend["name"], backend, searchpath.backend_defaults(backend["name"])),
        " ".join(run),
    )


def _label(name: str, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    changed = ",".join(_differing({key: value for key, value in given.items() if key != "name"}, defaults))
    return f"{name}({changed})" if changed else name


def _differing(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[str]:
    return [f"{key}={_shown(value)}" for key, value in given.items() if value != defaults.get(key)]


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.12g}"
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)
    return text if len(text) <= LONGEST else f"#{hashlib.sha256(text.encode()).hexdigest()[:SHOWN]}"

"""What a record holds, and the check that what is read is one.

Records come from others, too, and from torn disks. Fields that are not named here stay in `Record.content`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, KeysView, Mapping
from typing import Any

import msgspec

from spinbench.foundation.remarks import OBEYED
from spinbench.measuring.cells import drop_ended_defaults, protocol_digest
from spinbench.measuring.record_model import ModelFeatures, Reference
from spinbench.measuring.record_parts import (
    Axes,
    Checkpoint,
    CodeState,
    Environment,
    Metric,
    Name,
    Number,
    Part,
    Result,
    Time,
)

# Control characters of terminals, and surrogates, which UTF-8 files cannot hold.
_UNPRINTABLE = re.compile(f"[{OBEYED}\ud800-\udfff]")

# Texts without a match need no second check: an unprintable character appears as itself or escaped.
_LONG = re.compile(r"\d{19}")
_SUSPECT = re.compile(_UNPRINTABLE.pattern + r"|\\[bfru]")


class Race(Part, frozen=True, kw_only=True):
    """Of a candidate of `spinbench advise`.

    Attributes:
        asked: the budget of the candidate's last run; None where it gave no answer.
        runs: number of the candidate's runs.
        seconds: seconds of all its runs.
        error: the error that the candidate claims.
        distance: how far its answer is from the best one.
        fate: why it went on or was dropped.
        verdict: the verdict of the race.
        command: the command that runs the winner again.
    """

    asked: dict[str, Any] | None = None
    runs: object = None
    seconds: Number | None = None
    error: object = None
    distance: object = None
    fate: str
    verdict: object = None
    command: object = None


class Record(Part, frozen=True, kw_only=True, rename={"model_class": "class", "result_or_none": "result"}):
    """A measured cell.

    Attributes:
        id: hash of this record, hexadecimal.
        key: hash of what is measured: configuration, contents of files, state of the code.
        family: the sweep's setting `family`, by which asv groups benchmarks.
        model_class: the sweep's setting `class`, a name for models of one kind.
        axes: labels.
        config: what was measured, as Hydra composed it: settings of any plugin, hence no type. Of records of 0.1.0
            without settings that have ended and were at their defaults.
        protocol: hash of all these settings but axes and seed; results are comparable where it is equal.
        files: hashes of the model's files.
        status: "ok", "failed" or "skipped".
        error: why there is no result, in a sentence.
        traceback: where a cell failed that has no result.
        git: the code that was measured.
        plugins: version and source of each plugin's distribution.
        metrics: tracked numbers by name.
        result_or_none: None where there is none; `result` is that of a record whose status is "ok".
        reference: the exact answer; None where nothing ran.
        features: the model's; None where nothing ran.
        stages: seconds of each stage of the cell.
        environment: where it was measured.
        oversubscribed: a sentence where the process did not have its core to itself.
        race: of a candidate of `spinbench advise`.
        started_at: when the cell began, as Unix time.
        duration: wall-clock seconds of the whole cell.
        versions: version of each metric, of a record in a journal.
        machine: the machine whose journal holds the record.
        series: the series of the history that the record belongs to, beyond conf/axes.
        content: the whole of its JSON; for what has no name here, and for copies.
    """

    id: str
    key: str
    family: str
    model_class: str | None = None
    axes: Axes
    config: dict[str, Any]
    protocol: str
    files: dict[str, Any] | None = None
    status: str
    error: str | None
    traceback: str | None
    git: CodeState
    plugins: dict[str, Any] | None = None
    metrics: dict[str, Metric]
    result_or_none: Result | None
    reference: Reference | None
    features: ModelFeatures | None = None
    stages: dict[str, Any] | None = None
    environment: Environment
    oversubscribed: str | None = None
    race: Race | None = None
    started_at: Time
    duration: Number
    versions: dict[str, Any] | None = None
    machine: str | None = None
    series: Any = None
    content: dict[str, Any] = msgspec.field(default_factory=dict, name="")

    @property
    def result(self) -> Result:
        """Of a record whose status is "ok".

        Raises:
            ValueError: there is none.
        """
        if self.result_or_none is None:
            raise ValueError(f"the record {self.id} has no result")
        return self.result_or_none

    @property
    def exact_log_z(self) -> float | None:
        """In nats, where it is known."""
        return (self.reference or Reference()).log_z

    @property
    def no_reference(self) -> str | None:
        """Why there is no exact answer to compare with."""
        return (self.reference or Reference()).reason

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """Accuracy over time; none where nothing ran."""
        if self.result_or_none is None:
            return []
        return self.result_or_none.trajectory

    def metric(self, name: str) -> Metric:
        """A tracked number; one without a value where it was not measured."""
        return self.metrics.get(name, Metric())

    def __getitem__(self, name: str) -> Any:
        """A part as in the JSON file; reports of plugins read records so."""
        return self.content[name]

    def keys(self) -> KeysView[str]:
        """Names of the parts in the JSON file."""
        return self.content.keys()

    def get(self, name: str, default: object = None) -> Any:
        """A part as in the JSON file, or the default."""
        return self.content.get(name, default)


class _Named(Part, frozen=True, kw_only=True):
    """A model, method or backend; its settings may be any."""

    name: Name


class _Budget(Part, frozen=True, kw_only=True):
    """How long a cell runs."""

    seconds: Number | None = None
    samples: Number | None = None
    burn_in: Number | None = None
    cpu: bool | None = None


class _Config(Part, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `Record.config` must hold, which stays a plain dictionary."""

    model: _Named
    method: _Named
    backend: _Named
    budget: _Budget
    chains: Number
    seed: Number


def _parse_int64(digits: str) -> int:
    if len(digits) > 20 or not -(2**63) <= (number := int(digits)) < 2**63:
        raise ValueError(f"the integer {digits[:24]}… has more than 64 bits")
    return number


def parse_json(text: str) -> Any:
    """The content of a JSON file, without characters that do more than to be shown.

    Raises:
        ValueError: no JSON, or nested more deeply than can be read; NaN, infinities and integers of more than 64 bits
            are none.
    """
    try:
        parse_int = _parse_int64 if _LONG.search(text) else None
        content = json.loads(text, parse_constant=_refuse_constant, parse_int=parse_int)
        if _SUSPECT.search(text):
            return _replace_unprintable(content)
        return content
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def parse_record(content: Mapping[str, Any]) -> Record:
    """The record that is written so.

    Raises:
        ValueError: a part is missing or malformed, which is named: "result.log_z".
    """
    try:
        record = msgspec.convert(content, Record)
    except msgspec.ValidationError as error:
        raise ValueError(f"{_field_path(str(error))} is missing or malformed") from None
    if record.status == "ok" and record.result_or_none is None:
        raise ValueError("result is missing or malformed")
    try:
        msgspec.convert(record.config, _Config)
    except msgspec.ValidationError as error:
        raise ValueError(f"{_field_path(str(error), 'config')} is missing or malformed") from None
    if not all(re.fullmatch(r"[\w-]+", name) for name in _setting_names(record.config)) or "${" in json.dumps(
        record.config
    ):
        raise ValueError("config is missing or malformed")
    config = drop_ended_defaults(record.config)
    if config != record.config:
        msgspec.structs.force_setattr(record, "config", config)
        msgspec.structs.force_setattr(record, "protocol", protocol_digest(config))
    msgspec.structs.force_setattr(record, "content", dict(content))
    return record


def _field_path(message: str, *above: str) -> str:
    """The part that msgspec's message is about, "result.log_z"; of a table's entries the table."""
    place = "".join(re.findall(r"at `(?:key` in `)?\$\.?([^`]*)`", message)[:1])
    missing = re.findall(r"missing required field `([^`]*)`", message)[:1]
    if "[" in place:
        return ".".join([*above, place.partition("[")[0]])
    return ".".join([*above, *filter(None, [place, *missing])])


def _setting_names(config: Mapping[str, object]) -> Iterator[str]:
    for part in config.values():
        if isinstance(part, Mapping):
            yield from part


def _replace_unprintable(value: object) -> object:
    if isinstance(value, str):
        return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, dict):
        return {_replace_unprintable(key): _replace_unprintable(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_replace_unprintable(entry) for entry in value]
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"it holds {name}, which JSON has not")

"""What a record must look like before anything is made of it: records come from others, too, and from torn disks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from spinbench.foundation.remarks import OBEYED
from spinbench.metrics import MOST

Check = Callable[[Any], bool]
Shape = Check | Mapping[str, Any]
"""A check of a value, or the shapes of a mapping's entries.

An entry whose name ends in "~" may be None, in "-" absent, in "?" either."""

_UNPRINTABLE = re.compile(f"[{OBEYED}\ud800-\udfff]")
"""What a terminal would obey, and halves of characters, which no file can hold."""

_SUSPECT = re.compile(_UNPRINTABLE.pattern + r"|\\[bfru]")
"""What a text has that holds any of it, as itself or escaped; most have nothing, and need no second look."""

_OUTSIDE = re.compile(r"^/|\.\.|:/|[\\$]")
"""In the name of a configuration."""


def parse(text: str) -> Any:
    """The content of a JSON file, without characters that do more than to be shown.

    Raises:
        ValueError: no JSON, or nested more deeply than can be read; NaN and infinities are none.
    """
    try:
        found = json.loads(text, parse_constant=_refuse)
        return _printable(found) if _SUSPECT.search(text) else found
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def fault(value: Any, shape: Shape, where: str = "") -> str | None:
    """The name of the first entry that is missing or malformed, "result.log_z"; None if all is as it should be."""
    if callable(shape):
        return None if shape(value) else where
    if not isinstance(value, Mapping):
        return where
    for name, inner in shape.items():
        key = name.rstrip("~-?")
        if name.endswith(("?", "-")) and key not in value:
            continue
        if name.endswith(("?", "~")) and key in value and value[key] is None:
            continue
        path = f"{where}.{key}" if where else key
        if key not in value:
            return path
        if (found := fault(value[key], inner, path)) is not None:
            return found
    return None


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _name(value: Any) -> bool:
    """Of a model, method or backend, which a command may hold: no path that leads out of the groups."""
    return isinstance(value, str) and _OUTSIDE.search(value) is None


def _of_a_command(config: Mapping[str, Any]) -> bool:
    """Whether a cell is of the parts of one, settings with names as Hydra has them, and nothing that it looks up."""
    names = [name for part in config.values() if isinstance(part, Mapping) for name in part]
    plain = all(re.fullmatch(r"[\w-]+", name) for name in names)
    return set(config) <= set(_CONFIG) and plain and "${" not in json.dumps(config)


def _time(value: Any) -> bool:
    """Unix time that a calendar has."""
    return _number(value) and 0 <= value < 2.5e11


def _size(value: Any) -> bool:
    return _number(value) and value >= 0


def _mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _number(value: Any) -> bool:
    return (isinstance(value, float) and abs(value) < MOST) or (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    )


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and all(map(_number, value))


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _named_numbers(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_number, value.values()))


def _points(value: Any) -> bool:
    return isinstance(value, list) and all(fault(point, _POINT) is None for point in value)


def _bounds(value: Any) -> bool:
    return isinstance(value, list) and all(fault(bound, _BOUND) is None for bound in value)


def _metrics(value: Any) -> bool:
    return isinstance(value, Mapping) and all(fault(metric, _METRIC) is None for metric in value.values())


_POINT = {"seconds": _number, "samples": _number, "marginal_rmse~": _number, "log_z~": _number, "log_z_error~": _number}
_BOUND = {"value~": _number, "side": _text, "grade": _text, "by": _text, "delta": _number}
_METRIC = {
    "value?": _number,
    "standard_error?": _size,
    "scatter?": _size,
    "failed?": _text,
    "remark?": _text,
    "samples?": _numbers,
}
_RESULT = {
    "tier": _text,
    "kernel?": _text,
    "notes-": _texts,
    "status": _text,
    "compilation": _text,
    "seconds": {"run": _number, "compile": _number, "plan-": _number, "burn_in-": _number},
    "samples?": _number,
    "chains?": _number,
    "burn_in?": _number,
    **{f"{name}?": _number for name in ("log_z", "log_z_se", "ess_min", "ess_median", "marginals_claim")},
    "r_hat_max~": _number,
    "log_z_kind~": _text,
    "log_z_estimates?": _mapping,
    "diagnostics?": _mapping,
    "bounds-": _bounds,
    "memory?": {"before_bytes?": _number, "peak_bytes?": _number},
    "trajectory": _points,
}
_PART = {"name": _name}
_CONFIG = {
    "model": _PART,
    "method": _PART,
    "backend": _PART,
    "budget": {"seconds?": _number, "samples?": _number, "burn_in?": _number},
    "chains": _number,
    "seed": _number,
}
_RECORD = {
    "id": _text,
    "key": _text,
    "family": _text,
    "class?": _text,
    "axes": {"model": _text, "method": _text, "backend": _text},
    "config": _CONFIG,
    "protocol": _text,
    "files?": _mapping,
    "status": _text,
    "error~": _text,
    "traceback~": _text,
    "git": {"commit?": _text, "diff?": _text, "elsewhere?": _text},
    "metrics": _metrics,
    "result~": _RESULT,
    "reference~": {"log_z?": _number, "reason-": _text},
    "stages?": _mapping,
    "environment": {"versions-": _mapping, "threads-": _mapping, "gpus?": _texts},
    "oversubscribed?": _text,
    "race?": {"asked?": _mapping, "fate": _text},
    "started_at": _time,
    "duration": _number,
    "versions?": _mapping,
}
_GOOD: Shape = {**{name: shape for name, shape in _RECORD.items() if name != "result~"}, "result": _RESULT}


def wrong(record: Mapping[str, Any]) -> str | None:
    """The first entry of a record that is missing or malformed; a good one has a result."""
    found = fault(record, _GOOD if record.get("status") == "ok" else _RECORD)
    if found is None and not _of_a_command(record["config"]):
        return "config"
    return found


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, dict):
        return {_printable(key): _printable(entry) for key, entry in value.items()}
    return [_printable(entry) for entry in value] if isinstance(value, list) else value


def _refuse(name: str) -> float:
    raise ValueError(f"it holds {name}, which JSON has not")

"""What a measured cell is: hashes of its configuration, and settings that it may have of an earlier version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

# Settings of methods in 0.1.0 that later versions have no more, with their defaults, which stand in its records.
ENDED_DEFAULTS: dict[str, dict[str, object]] = {
    "gibbs": {"ladder": 50},
    "pt": {"updates": "gibbs", "blocks": 0, "houdayer": 0},
}


def drop_ended_defaults(config: Mapping[str, Any]) -> dict[str, Any]:
    """A cell without settings that have ended and were at their defaults: that is what today's versions measure."""
    method = config["method"]
    ended = ENDED_DEFAULTS.get(method["name"], {}).items()
    lasting = {key: value for key, value in method.items() if (key, value) not in ended}
    return {**config, "method": lasting}


def protocol_digest(config: Mapping[str, Any]) -> str:
    """Hash of all settings that are neither an axis nor the seed: results are comparable where it is equal."""
    method, backend = dict(config["method"]), dict(config["backend"])
    del method["name"], backend["name"]
    return digest([method, backend, config["budget"], config["chains"]])


def digest(content: object) -> str:
    """16 hexadecimal digits that depend on plain data alone."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

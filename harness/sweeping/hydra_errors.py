"""Hydra's and OmegaConf's errors as sentences of ours: what was given, what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import (
    GrammarParseError,
    InterpolationKeyError,
    MissingMandatoryValue,
    OmegaConfBaseException,
    UnsupportedInterpolationType,
)

from spinbench.errors import SpinbenchError
from spinbench.foundation.overrides import format_value
from spinbench.foundation.remarks import unknown_name
from spinbench.inference import registry
from spinbench.models import formats, specs
from spinbench.models.specs import MISSING
from spinbench.sweeping import launchers

_NOT_A_KEY = re.compile(r"Could not override '([^']+)'|Key '([^']+)' is not in struct")
_MERGING = re.compile(r"Error merging override (.*)", re.DOTALL)
_THERE_ALREADY = re.compile(r"An item is already at '([^']+)'")
_CHOSEN = ("hydra.launcher", "hydra.sweeper")
# Longest system message in characters: it may repeat a name that is too long.
_LONGEST = 300
_REFERENCE = "${NAME} refers to the setting of this whole name, as ${seed}"
_QUOTED = re.compile(r"'([^']+)'")


@contextmanager
def explain_errors() -> Iterator[None]:
    """Turn the errors of Hydra and OmegaConf into one sentence each."""
    try:
        yield
    except MissingConfigException as error:
        raise _missing(error) from error
    except OverrideParseException as error:
        raise _unreadable(str(error.override)) from error
    except MissingMandatoryValue as error:
        name = str(error.full_key or "a value")
        raise SpinbenchError(f"{name} was not given; add {name}=VALUE") from error
    except (HydraException, OmegaConfBaseException) as error:
        within: BaseException | None = error
        while within is not None and not isinstance(within, SpinbenchError):
            within = within.__context__
        if within is not None:  # raised by a resolver
            raise within from None
        raise SpinbenchError(_sentence(error)) from error
    except OSError as error:
        # For example, a name that is too long.
        raise SpinbenchError(f"a name cannot be used: {str(error)[:_LONGEST]}") from error


@contextmanager
def readable(line: str) -> Iterator[None]:
    """Turn what Python says of numbers and ranges in an override into a sentence."""
    try:
        yield
    except ValueError as error:
        message = f"{line[:_LONGEST]} was given, whose values cannot be made: {str(error)[:_LONGEST]}"
        raise SpinbenchError(message) from error


def check(override: Override) -> None:
    """Refuse an override that Hydra reads, but for which there is no place in a sweep.

    Raises:
        SpinbenchError: it names nothing, or deletes what each cell needs.
    """
    line, key = str(override.input_line), override.key_or_group
    if not key or override.package == "":
        raise _unreadable(line)
    if key in _CHOSEN and not isinstance(override.value(), dict):
        raise SpinbenchError(f"{line} was given; which one it is, is said as {key.replace('.', '/')}=NAME")
    if override.is_delete() and not override.is_hydra_override():
        raise SpinbenchError(f"{line} was given; a setting is not deleted but set, {key}=VALUE")


def compose_first_cell(overrides: list[str]) -> DictConfig:
    """The first cell's configuration, Hydra's node included.

    Raises:
        HydraException, OmegaConfBaseException: as `explain_errors` turns them into sentences.
        SpinbenchError: for a key or a group's member that there is not.
    """
    try:
        return compose("config", overrides, return_hydra_config=True)
    except (ValueError, TypeError, AssertionError) as error:
        # Raised by Hydra, for example if a group is set to a number.
        line = _culprit(overrides)
        group = line.partition("=")[0]
        loader = GlobalHydra.instance().config_loader()
        if group in loader.list_groups(""):
            alternatives = f"{group} is one of {', '.join(loader.get_group_options(group))}"
            raise SpinbenchError(
                f"{line} was given; {alternatives}; its values are set as {group}.NAME=VALUE"
            ) from error
        raise SpinbenchError(f"{line} was given, which cannot be used: {' '.join(str(error).split())}") from error
    except HydraException as error:
        match = _NOT_A_KEY.search(str(error))
        if match is None:
            raise
        key = match[1] or match[2]
        others = [line for line in overrides if line.partition("=")[0] != key]
        if len(others) == len(overrides):
            raise
        raise unknown_key(key, compose_first_cell(others)) from error


def _culprit(overrides: list[str]) -> str:
    """Of overrides that Hydra does not take, one without which it does; all of them if there is none."""
    for place, line in enumerate(overrides):
        with suppress(ValueError, TypeError, AssertionError, HydraException, OmegaConfBaseException):
            compose("config", [*overrides[:place], *overrides[place + 1 :]])
            return line
    return " ".join(overrides)


def unknown_key(key: str, config: DictConfig) -> SpinbenchError:
    """The error for a setting that a configuration has not."""
    parent, _, leaf = key.rpartition(".")
    node: object = config
    if parent:
        node = OmegaConf.select(config, parent, default=MISSING)
    if node is MISSING and parent in GlobalHydra.instance().config_loader().list_groups(""):
        return SpinbenchError(f"{key} was given without {parent}=NAME, which chooses whose setting it is")
    if node is MISSING:
        return unknown_key(parent, config)
    if not isinstance(node, DictConfig):
        return SpinbenchError(f"{key} was given, but {parent} is a value, {format_value(node)}, and has no settings")
    allowed = [str(name) for name in node if name != "hydra"]
    if parent in ("model", "method", "backend"):
        subject = f"setting of {parent} {node['name']}"
        allowed.remove("name")
        if parent == "method" and node["name"] in registry.names("methods"):
            removed = registry.setting_replacements(registry.method_class(node["name"]))
            return unknown_name(subject, leaf, allowed, removed)
    elif parent:
        subject = f"setting in {parent}"
    else:
        subject = "setting or group"
        allowed += ["experiment", "launcher"]
    return unknown_name(subject, leaf, allowed)


def _unreadable(line: str) -> SpinbenchError:
    return SpinbenchError(
        f"the override {line!r} cannot be read; write NAME=VALUE, or NAME=A,B without spaces for several values, with "
        "quotes around a value that itself holds spaces, commas, brackets or the like"
    )


def _sentence(error: BaseException) -> str:
    """What another library's error says, without what is of no use to who typed the line."""
    text = str(error)
    if merging := _MERGING.match(text):
        return f"{merging[1]} was given, which cannot be used: {_sentence(error.__cause__ or ValueError(text))}"
    if match := _THERE_ALREADY.search(text):
        return f"+{match[1]}=VALUE was given, but {match[1]} is there already; {match[1]}=VALUE sets it"
    if isinstance(error, HydraException) and error.__cause__ is not None and _NOT_A_KEY.search(text) is None:
        return _sentence(error.__cause__)
    key = getattr(error, "full_key", None) or "a value"
    if isinstance(error, InterpolationKeyError) and (name := _QUOTED.search(text)):
        return f"{key} refers to ${{{name[1]}}}, but there is no {name[1]}; {_REFERENCE}"
    if isinstance(error, UnsupportedInterpolationType):
        function = text.splitlines()[0].rpartition(" ")[2]
        return f"{key} refers to ${{{function}:…}}, but there is no function {function}; {_REFERENCE}"
    if isinstance(error, GrammarParseError):
        return f"{key} holds what cannot be read, {text.splitlines()[0]}; {_REFERENCE}"
    lines = [line for line in text.splitlines() if not line.strip().startswith(("full_key:", "object_type="))]
    plain = " ".join(" ".join(lines).split())
    return plain if key in (*plain.split(), "a value") else f"{key}: {plain}"


def _missing(error: MissingConfigException) -> SpinbenchError:
    path = str(error.missing_cfg_file)
    group = next((group for group in ("model", "method", "backend") if path.startswith(f"{group}/")), None)
    allowed = {str(option) for option in error.options or ()}
    if group is None:
        head, _, name = path.rpartition("/")
        if head == "hydra/launcher" and (refusal := launchers.not_installed(name)) is not None:
            return refusal
        return unknown_name(head or "config", name, sorted(allowed))
    if group == "model":
        if formats.formats_by_name(name := path.removeprefix("model/")):
            return SpinbenchError(f"model={name} was given; a file is read with model=file model.path={name}")
        allowed |= set(specs.names())
    else:
        allowed |= set(registry.names(f"{group}s"))  # type: ignore[arg-type]
    return unknown_name(group, path.removeprefix(f"{group}/"), sorted(allowed))


def at_fault(error: BaseException | None, lines: Sequence[str]) -> str | None:
    """The key of the line for which Hydra raised this; None: of no single one."""
    if isinstance(error, MissingConfigException):
        assignments = [line.partition("=") for line in lines]
        return next((key for key, _, name in assignments if f"{key}/{name}" == error.missing_cfg_file), None)
    if isinstance(error, HydraException) and (match := _NOT_A_KEY.search(str(error))):
        return match[1] or match[2]
    return None

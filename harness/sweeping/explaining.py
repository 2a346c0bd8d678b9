"""Hydra's and OmegaConf's errors as sentences of ours: what was given, what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from spinbench.errors import SpinbenchError
from spinbench.foundation.names import unknown_name
from spinbench.inference import registry
from spinbench.models import formats, specs
from spinbench.sweeping import launchers

_NOT_A_KEY = re.compile(r"Could not override '([^']+)'|Key '([^']+)' is not in struct")


@contextmanager
def explained() -> Iterator[None]:
    """Turn the errors of Hydra and OmegaConf into one sentence each."""
    try:
        yield
    except MissingConfigException as error:
        raise _missing(error) from error
    except OverrideParseException as error:
        raise SpinbenchError(
            f"the override {error.override!r} cannot be read; write NAME=VALUE, or NAME=A,B without spaces for several "
            "values, with quotes around a value that itself holds spaces, commas, brackets or the like"
        ) from error
    except MissingMandatoryValue as error:
        name = str(error.full_key or "a value")
        raise SpinbenchError(f"{name} was not given; add {name}=VALUE") from error
    except (HydraException, OmegaConfBaseException) as error:
        within: BaseException | None = error
        while within is not None and not isinstance(within, SpinbenchError):
            within = within.__context__
        if within is not None:  # of a resolver
            raise within from None
        reason = str(error.__cause__ or error) if _NOT_A_KEY.search(str(error)) is None else str(error)
        raise SpinbenchError(" ".join(reason.split())) from error


def configured(overrides: list[str]) -> DictConfig:
    try:
        return compose("config", overrides, return_hydra_config=True)
    except ValueError as error:  # Hydra's for a group that is set to a number
        loader = GlobalHydra.instance().config_loader()
        for line in overrides:
            group, _, value = line.partition("=")
            if group in loader.list_groups("") and value not in (options := loader.get_group_options(group)):
                known = f"{group} is one of {', '.join(options)}"
                raise SpinbenchError(f"{line} was given; {known}; its values are set as {group}.NAME=VALUE") from error
        raise SpinbenchError(" ".join(str(error).split())) from error
    except HydraException as error:
        found = _NOT_A_KEY.search(str(error))
        if found is None:
            raise
        key = found[1] or found[2]
        others = [line for line in overrides if line.partition("=")[0] != key]
        if len(others) == len(overrides):
            raise
        raise unknown_key(key, configured(others)) from error


def unknown_key(key: str, config: DictConfig) -> SpinbenchError:
    parent, _, leaf = key.rpartition(".")
    node: Any = OmegaConf.select(config, parent) if parent else config
    if not isinstance(node, DictConfig):
        return unknown_key(parent, config)
    allowed = [str(name) for name in node if name != "hydra"]
    if parent in ("model", "method", "backend"):
        what = f"setting of {parent} {node['name']}"
        allowed.remove("name")
    else:
        what = f"setting in {parent}" if parent else "setting or group"
        allowed += [] if parent else ["experiment", "launcher"]
    return unknown_name(what, leaf, allowed)


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
        if formats.of_name(name := path.removeprefix("model/")):
            return SpinbenchError(f"model={name} was given; a file is read with model=file model.path={name}")
        allowed |= set(specs.names())
    else:
        allowed |= set(registry.names("methods" if group == "method" else "backends"))
    return unknown_name(group, path.removeprefix(f"{group}/"), sorted(allowed))


def at_fault(error: BaseException | None, lines: Sequence[str]) -> str | None:
    """The key of the line for which Hydra raised this; None: of no single one."""
    if isinstance(error, MissingConfigException):
        asked = [line.partition("=") for line in lines]
        return next((key for key, _, name in asked if f"{key}/{name}" == error.missing_cfg_file), None)
    found = _NOT_A_KEY.search(str(error)) if isinstance(error, HydraException) else None
    return None if found is None else found[1] or found[2]

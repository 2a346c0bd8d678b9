"""`spinbench completion`: what a shell has to know to complete commands, options, names and files."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import get_args

import shtab

from spinbench import conf
from spinbench.api import Precision
from spinbench.conf import searchpath
from spinbench.inference import registry
from spinbench.models import specs
from spinbench.reference.solvers import methods
from spinbench.reporting.commands import listing

# Metavars of arguments that are files and folders.
FILE_METAVARS, FOLDER_METAVARS = ("FILE", "MODEL", "RECORD"), ("FOLDER",)
PEER_METAVAR = "PEER"
SWEEP_FLAGS = ("-m", "--resume", "--profile", "--help")
# Groups that `spinbench sweep` completes, besides methods, backends and models.
CONF_GROUPS = ("experiment", "budget", "size", "launcher")
# Metavar of names that must not exist yet.
NEW_NAME_METAVAR = "NEW"


def run(arguments: argparse.Namespace) -> int:
    """Print the script for a shell that `shtab` knows; 0, the exit status.

    Names of methods and backends are those that are installed now.
    """
    names = {
        "--method": registry.names("methods"),
        "--backend": registry.names("backends"),
        "--precision": get_args(Precision),
        "--device": ["cpu", "gpu"],
        "--solver": methods(),
    }
    paths = dict.fromkeys(FILE_METAVARS, shtab.FILE) | dict.fromkeys(FOLDER_METAVARS, shtab.DIRECTORY)
    parser, groups = arguments.parser, _sweep_groups()
    _add_sweep_arguments(parser, groups)
    for action in _iterate_actions(parser):
        if action.metavar in paths:
            action.complete = paths[action.metavar]  # type: ignore[attr-defined]
        if action.metavar == PEER_METAVAR:
            action.choices = listing.peer_names()
        if action.metavar != NEW_NAME_METAVAR:
            for option in action.option_strings:
                action.choices = names.get(option, action.choices)
    print(shtab.complete(parser, arguments.shell) + {"bash": _bash_script(groups)}.get(arguments.shell, ""))
    return 0


def _sweep_groups() -> dict[str, list[str]]:
    """Of a sweep, with the names of their members."""
    names = {"method": registry.names("methods"), "backend": registry.names("backends"), "model": specs.names()}
    for group in CONF_GROUPS:
        files = (resources.files(conf) / group).iterdir()
        names[group] = sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml"))
    return names


def _add_sweep_arguments(parser: argparse.ArgumentParser, groups: Mapping[str, Sequence[str]]) -> None:
    """What stands behind `sweep` is Hydra's, and the parser does not know it."""
    (sweep,) = (action.choices["sweep"] for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for flag in SWEEP_FLAGS:
        sweep.add_argument(flag, action="store_true")
    assignments = [f"{group}={name}" for group in groups for name in groups[group]]
    sweep.add_argument("words", nargs="*", metavar="NAME=VALUE", choices=assignments, help="what is measured")


def _iterate_actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Of all commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _iterate_actions(command)


# Bash splits NAME=VALUE into three words and completes the last.
_BASH_FUNCTIONS = r"""
_spinbench() {
    local -a whole=()
    local word begun before= key= joined=
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if [[ ${#whole[@]} -gt 0 && ( $word == = || -n $joined ) ]]; then
            whole[${#whole[@]}-1]+=$word
        else
            whole+=("$word")
        fi
        joined=
        [[ $word == = ]] && joined=yes
    done
    local COMP_WORDS=("${whole[@]}") COMP_CWORD=$((${#whole[@]} - 1))
    begun=${COMP_WORDS[COMP_CWORD]}
    if [[ ${COMP_WORDS[1]} == sweep && $begun =~ ^(model|method|backend|budget)\.[^=]*$ ]]; then
        _spinbench_settings "$begun"
        return
    fi
    if [[ $begun == *=*,* ]]; then  # only the last of several values
        before=${begun#*=}
        before=${before%,*},
        begun=${begun%%=*}=${begun##*,}
        COMP_WORDS[COMP_CWORD]=$begun
    fi
    _shtab_spinbench
    if [[ $begun == *=* && ( -n $before || $COMP_WORDBREAKS == *=* ) ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${begun%=*}="}")
        [[ $COMP_WORDBREAKS == *=* ]] || key=${begun%%=*}=
        local IFS=$'\n'
        [[ -z ${COMPREPLY[0]} ]] && COMPREPLY=($(compgen -f -- "${begun##*=}"))
        [[ -n $key$before ]] && COMPREPLY=("${COMPREPLY[@]/#/$key$before}")
    fi
}
_spinbench_settings() {
    local group=${1%%.*} chosen= word member settings=
    for word in "${COMP_WORDS[@]}"; do
        [[ $word == "$group="* ]] && chosen=${word#*=}
    done
    local IFS=$',\n '
    for member in ${chosen:-default}; do
        settings+=" $(_spinbench_settings_of "$group=$member")"
    done
    COMPREPLY=($(compgen -P "$group." -S = -W "$settings" -- "${1#*.}"))
    compopt -o nospace +o filenames 2>/dev/null  # which would put \ before =
    return 0
}
"""


def _bash_script(names: Mapping[str, Sequence[str]]) -> str:
    """What bash is told beside shtab's script: NAME=VALUE, lists of values, and the settings of what is chosen.

    Args:
        names: of the members of each group of a sweep.
    """
    cases = "\n".join(
        f"        {' | '.join(members)}) echo '{setting_text}' ;;"
        for setting_text, members in _group_by_settings(names).items()
    )
    settings = f"_spinbench_settings_of() {{\n    case $1 in\n{cases}\n    esac\n}}\n"
    return f"{_BASH_FUNCTIONS}{settings}complete -o filenames -F _spinbench spinbench\n"


def _group_by_settings(names: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """GROUP=NAME of all that have settings, by what these are."""
    defaults = dict(re.findall(r"^  - (\w+): (\S+)$", _read_conf("config.yaml"), re.MULTILINE))
    choices_by_settings: dict[str, list[str]] = {}
    for group, members in names.items():
        for name in members:
            if setting_text := " ".join(_setting_names(group, name)):
                choices_by_settings.setdefault(setting_text, []).append(f"{group}={name}")
                if defaults.get(group) == name:
                    choices_by_settings[setting_text].append(f"{group}=default")
    return choices_by_settings


def _setting_names(group: str, name: str) -> Iterator[str]:
    defaults = {
        "model": searchpath.model_defaults,
        "method": searchpath.method_defaults,
        "backend": searchpath.backend_defaults,
    }
    if group in defaults:
        yield from (key for key in defaults[group](name) if key != "name")
    elif group == "budget":
        yield from re.findall(r"^(\w+):", _read_conf(f"{group}/{name}.yaml"), re.MULTILINE)


def _read_conf(path: str) -> str:
    return resources.files(conf).joinpath(path).read_text(encoding="utf-8")

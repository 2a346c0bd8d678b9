"""The command line. Each command imports what it needs, so that `--help` and `list` answer at once."""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from spinbench import __version__
from spinbench.command_help import COMMANDS, add_command, add_quiet_forms
from spinbench.errors import SpinbenchError
from spinbench.foundation.interruptions import STATUS, interruptible
from spinbench.foundation.platforms import check_supported
from spinbench.foundation.remarks import printable
from spinbench.history.command import COMMANDS as HISTORY
from spinbench.history.command import add as add_history
from spinbench.history.command import history_root

if TYPE_CHECKING:
    from spinbench.command_help import Subcommands

DEBUG_VARIABLE = "SPINBENCH_DEBUG"
USER_ERROR = 2
# Of each command the function that is called with its arguments and returns the exit status; imported only then.
HANDLERS = {
    "list": "reporting.listing:run_list",
    "peers": "reporting.listing:run_peers",
    "run": "reporting.commands.running:run",
    "exact": "reporting.commands.exact:run",
    "audit": "reporting.commands.auditing:run",
    "bracket": "reporting.commands.advising:run_bracket",
    "advise": "reporting.commands.advising:run_advise",
    "mixing": "reporting.commands.advising:run_mixing",
    "report": "reporting.commands.report:run_report",
    "profile": "reporting.commands.report:run_profile",
    "show": "reporting.commands.report:run_show",
    "rerun": "reporting.commands.report:run_rerun",
    "warm": "reporting.commands.warm:run",
    "completion": "reporting.commands.completion:run",
    "publish": "cli:publish",
    "check": "cli:check",
    "init": "cli:init",
    **dict.fromkeys(HISTORY, "history.command:run"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        The exit status: 0; 1 if a cell or a check failed, the gate found a regression, advice or mixing is not
        resolved, samples fail an audit, or a model has no exact answer; 2 for a user's error, with one sentence on
        standard error; 130 after an interruption.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # "±" in an ASCII locale is a question mark, and no traceback
            stream.reconfigure(errors="replace")
    given = list(sys.argv[1:] if argv is None else argv)
    words = [word for word in given if word != "--debug"]
    debug = bool(os.environ.get(DEBUG_VARIABLE)) or words != given
    with interruptible(signal.SIGINT) as interrupted:
        try:
            check_supported()
            return _dispatch(words)
        except SpinbenchError as error:
            if debug:
                traceback.print_exc()
            print(f"spinbench: {printable(' '.join(str(error).split()))}", file=sys.stderr)
            return USER_ERROR
        except KeyboardInterrupt:
            return _report_interruption()
        except BrokenPipeError:  # `spinbench list | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except Exception as error:
            if interrupted.is_set() and not debug:
                return _report_interruption()
            if debug or not isinstance(error, OSError) or error.errno != errno.ENOSPC:
                raise
            print(f"spinbench: {printable(str(error))}", file=sys.stderr)
            return USER_ERROR


def _report_interruption() -> int:
    """Says so on standard error, and returns the exit status."""
    print("spinbench: interrupted", file=sys.stderr)
    return STATUS


def _dispatch(words: list[str]) -> int:
    if words[:1] == ["sweep"]:  # its arguments are Hydra's
        from spinbench.sweeping.command import main as sweep

        return sweep(words[1:])
    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        from spinbench.foundation.remarks import unknown_name

        raise unknown_name("command", words[0], COMMANDS)
    arguments = _parser().parse_args(words)
    if getattr(arguments, "cpu", False):
        arguments.budget += " cpu"
    module, _, name = HANDLERS[arguments.command].partition(":")
    handle = getattr(import_module(f"spinbench.{module}"), name)
    if not (getattr(arguments, "json", False) or getattr(arguments, "quiet", False)):
        return int(handle(arguments))
    arguments.stdout = sys.stdout
    with open(os.devnull, "w") as sink, contextlib.redirect_stdout(sink):
        return int(handle(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="spinbench",
        description="Which inference method, on which compute backend, is most accurate per second on your discrete "
        "graphical model?",
        epilog=f"--debug or {DEBUG_VARIABLE}=1 shows where an error comes from.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"spinbench {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_command(commands, "sweep", add_help=False)
    run = _about_a_model(commands, "run", "wall-clock, as 2s or 1min, or samples")
    run.add_argument("--method", default="gibbs", metavar="NAME", help="or a file of Python that defines one; gibbs")
    run.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="a setting of the method")
    run.add_argument("--backend", metavar="NAME", help="by default numba, or another one that the method runs on")
    run.add_argument("--tier", metavar="TIER", help="native or generic; by default a kernel, if there is one")
    run.add_argument("--kernel", metavar="DISTRIBUTION", help="the distribution whose kernel is asked")
    run.add_argument("--chains", type=int, default=16, metavar="C", help="by default 16")
    run.add_argument("--precision", default="float64", metavar="P", help="float64, the default, or float32")
    run.add_argument("--device", default="cpu", metavar="D", help="cpu, the default, or gpu")
    run.add_argument("--target", metavar="WHAT", help="map: the heaviest state, in place of marginals and log Z")
    run.add_argument("--until", metavar="ERROR", help="end as soon as it is reached: 'se<0.01' or 'log_z_se<0.1'")
    run.add_argument("--output", type=Path, action="append", default=[], metavar="FILE", help=".MAR, .PR, .MPE, .csv")
    _add_exact(commands)
    bracket = _about_a_model(commands, "bracket")
    bracket.add_argument("--gap", type=float, metavar="NATS", help="end once log Z is known so closely")
    bracket.add_argument("--delta", type=float, default=1e-3, metavar="P", help="that probable bounds are wrong; .001")
    bracket.add_argument("--assumed", action="store_true", help="and above, if tempering has mixed")
    add_command(commands, "list")
    peers = add_command(commands, "peers")
    peers.add_argument("what", nargs="?", choices=["install"], help="by default they are listed")
    peers.add_argument("names", nargs="*", metavar="PEER", help="of those to be installed")
    report = add_command(commands, "report")
    report.add_argument("--output", type=Path, metavar="FOLDER", help="for the page; by default report in the first")
    report.add_argument("--panels", action="store_true", help="each model's pictures as PDF and SVG of their own, too")
    report.add_argument("--tables", action="store_true", help="only the files with tables, without page and pictures")
    report.add_argument("--compare", nargs=2, metavar=("A", "B"), help="two sweeps' folders or two commits")
    report.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="that a sweep wrote")
    report.add_argument("--model", action="append", metavar="NAME", help="only print its table; * stands for any text")
    profile = add_command(commands, "profile")
    profile.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="that a sweep wrote")
    profile.add_argument("--all", action="store_true", help="all methods after each budget, not only the first few")
    profile.add_argument("--page", type=Path, metavar="FILE", help="write it as Markdown, with pictures beside it")
    show = add_command(commands, "show")
    rerun = add_command(commands, "rerun")
    rerun.add_argument("--time-limit", type=float, metavar="SECONDS", help="beyond the budget; by default a sweep's")
    for command in (show, rerun):
        command.add_argument("record", metavar="RECORD", help="path, or the beginning of a key or id")
    warm = add_command(commands, "warm")
    warm.add_argument("--backend", default="numba", metavar="NAME", help="by default numba")
    warm.add_argument("--method", action="append", metavar="NAME", help="by default all; it may be repeated")
    warm.add_argument("--precision", default="float64", metavar="P", help="float64, the default, or float32")
    publish = add_command(commands, "publish")
    publish.add_argument("--offline", action="store_true", help="with its scripts, from npm packages, beside it")
    add_history(commands)
    check = add_command(commands, "check")
    check.add_argument("--backend", metavar="NAME", help="by default all")
    check.add_argument("--method", metavar="NAME", help="by default all")
    check.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="a setting of the method")
    check.add_argument("--seconds", type=float, metavar="S", help="of a pair, for those checks that tell most")
    check.add_argument("--tier", choices=["native", "generic"], help="kernels alone, or programs alone")
    check.add_argument("--kernel", metavar="DIST", help="the distribution whose kernels are checked")
    check.add_argument("--device", default="cpu", metavar="D", help="cpu, the default, or gpu")
    check.add_argument(
        "--chains", type=int, metavar="C", help="a multiple of 64, by default 2048; some run 256 or more"
    )
    advise = _about_a_model(commands, "advise")
    advise.add_argument("--target", default="marginals", metavar="WHAT", help="marginals, the default, or log_z")
    advise.add_argument("--candidates", metavar="A,B", help="methods, or METHOD.BACKEND; by default all that fit")
    advise.add_argument("--records", type=Path, metavar="FOLDER", help="keep the race's records, and enter the history")
    _add_audit(commands)
    mixing = _about_a_model(commands, "mixing")
    mixing.add_argument("--tv", type=float, default=0.01, metavar="D", help="distance in total variation; .01")
    completion = add_command(commands, "completion")
    completion.add_argument("shell", choices=["bash", "zsh", "fish"])
    completion.set_defaults(parser=parser)
    init = add_command(commands, "init")
    init.add_argument("folder", type=Path, metavar="FOLDER", help="a new package's; alone: where a history is kept")
    kinds = init.add_mutually_exclusive_group()
    for kind in ("backend", "method", "family", "format", "metric"):
        kinds.add_argument(f"--{kind}", metavar="NEW", help=f"of a {kind}, as sweeps and records have it")
    return parser


def _about_a_model(
    commands: Subcommands, name: str, budget: str = "wall-clock, as 2s or 1min"
) -> argparse.ArgumentParser:
    """A command on one model, within a budget, from a seed."""
    command = add_command(commands, name)
    command.add_argument("model", metavar="MODEL", help="a file, or a name that `spinbench list` shows")
    command.add_argument("--evidence", metavar="FILE", help="observed variables, a .evid file")
    command.add_argument("--budget", default="10s", metavar="TIME", help=f"{budget}; by default 10s")
    command.add_argument("--cpu", action="store_true", help="seconds of the budget are the CPU's, of all processes")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="of all random numbers; by default 0")
    add_quiet_forms(command)
    return command


def _add_exact(commands: Subcommands) -> None:
    exact = add_command(commands, "exact")
    exact.add_argument("model", metavar="MODEL", help="a file, a name that `spinbench list` shows, or a folder")
    exact.add_argument("--evidence", metavar="FILE", help="observed variables; in a folder, FILE.evid beside each FILE")
    exact.add_argument("--budget", metavar="TIME", help="wall-clock of each model; by default 60s in a folder")
    exact.add_argument(
        "--max-gib", type=float, metavar="G", help="memory; by default half of what is free, divided by the jobs"
    )
    exact.add_argument("--no-marginals", dest="marginals", action="store_false", help="log Z alone")
    exact.add_argument("--solver", default="auto", metavar="NAME", help="by default auto, the cheapest that fits")
    exact.add_argument(
        "--output", type=Path, action="append", default=[], metavar="FILE", help=".MAR, .PR, .csv, .order; folder: .csv"
    )
    exact.add_argument("--order", type=Path, metavar="FILE", help="eliminate along it, as --output FILE.order wrote it")
    exact.add_argument("--uai-results", type=Path, metavar="FOLDER", help="for a .PR and a .MAR file of each model")
    exact.add_argument("--jobs", type=int, default=1, metavar="N", help="models at a time, of a folder; by default 1")
    add_quiet_forms(exact)


def _add_audit(commands: Subcommands) -> None:
    audit = add_command(commands, "audit")
    audit.add_argument("samples", metavar="SAMPLES", help=".npz, .npy, .csv, a dimod SampleSet's .json, ArviZ's .nc")
    audit.add_argument("model", metavar="MODEL", help="a file, or a name that `spinbench list` shows")
    audit.add_argument("--evidence", metavar="FILE", help="observed variables, a .evid file; samples are of the others")
    audit.add_argument("--alpha", type=float, default=0.01, metavar="P", help="of a false alarm; by default 0.01")
    audit.add_argument("--budget", default="10s", metavar="TIME", help="of exact answers and bounds; by default 10s")
    audit.add_argument("--seed", type=int, default=0, metavar="N", help="of all random numbers; by default 0")
    audit.add_argument("--output", type=Path, action="append", default=[], metavar="FILE", help=".csv of frequencies")
    add_quiet_forms(audit)


def check(arguments: argparse.Namespace) -> int:
    """`spinbench check`."""
    from spinbench.testing.command import main

    how = {name: getattr(arguments, name) for name in ("tier", "kernel", "device", "chains", "seconds")}
    return main(arguments.backend, arguments.method, setting_texts=arguments.set, **how)


def init(arguments: argparse.Namespace) -> int:
    """`spinbench init`: the package of a plugin, or a history."""
    from spinbench.scaffold import history as tracked
    from spinbench.scaffold import package

    kinds = [kind for kind in package.GROUPS if getattr(arguments, kind) is not None]
    folder = arguments.folder
    lines = package.init(folder, kinds[0], getattr(arguments, kinds[0])) if kinds else tracked.init(folder)
    print("\n".join(lines))
    return 0


def publish(arguments: argparse.Namespace) -> int:
    """`spinbench publish`."""
    from spinbench.history import publish as site
    from spinbench.reporting.progress_display import short_path

    index = site.publish(history_root(), offline=arguments.offline)
    server = f"{Path(sys.executable).name} -m http.server -d {short_path(index.parent)}"
    print(f"site: {short_path(index)}; see it with: {server}")
    return 0

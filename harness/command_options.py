"""The options of each command, with a sentence on each."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from spinbench import __version__
from spinbench.command_help import EXIT_STATUSES, CommandParser, add_command, add_evidence, add_quiet_forms
from spinbench.history.command import add as add_history

if TYPE_CHECKING:
    from spinbench.command_help import Subcommands

DEBUG_VARIABLE = "SPINBENCH_DEBUG"
GLOBAL_OPTIONS = ("-h", "--help", "--version", "--debug")


def build_parser() -> CommandParser:
    """The parser of all commands; that of `sweep` is Hydra's own."""
    parser = CommandParser(
        prog="spinbench",
        description="Which inference method, on which compute backend, is most accurate per second\n"
        "on your discrete graphical model?",
        epilog="\n".join(
            [
                "exit statuses:",
                *(f"  {status:<5} {meaning}" for status, meaning in EXIT_STATUSES.items()),
                "",
                f"--debug or {DEBUG_VARIABLE}=1 shows where an error comes from.",
                "An example: spinbench run grid --budget 2s",
            ]
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"spinbench {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_command(commands, "sweep", add_help=False)
    run = _about_a_model(commands, "run", "so long, as 2s or 1min, or after so many samples, as 5000")
    run.add_argument("--method", default="gibbs", metavar="NAME", help="Run this method or .py file; gibbs by default.")
    run.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="Set a setting of the method; may be repeated."
    )
    run.add_argument("--backend", metavar="NAME", help="Compute on this backend; by default numba, if it can.")
    run.add_argument("--tier", metavar="TIER", help="Run only a kernel (native) or only the array program (generic).")
    run.add_argument("--kernel", metavar="DISTRIBUTION", help="Run the kernel that this Python distribution brings.")
    run.add_argument("--chains", type=int, default=16, metavar="C", help="Run so many chains; 16 by default.")
    run.add_argument("--precision", default="float64", metavar="P", help="Compute in float64, the default, or float32.")
    run.add_argument("--device", default="cpu", metavar="D", help="Compute on the cpu, the default, or the gpu.")
    run.add_argument("--target", metavar="WHAT", help="Ask for map, the heaviest state, not for marginals and log Z.")
    run.add_argument("--until", metavar="ERROR", help="Stop once the error is so small: 'se<0.01' or 'log_z_se<0.1'.")
    run.add_argument(
        "--output",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="Write the answer as .MAR, .PR, .MPE or .csv; may be repeated.",
    )
    _add_exact(commands)
    bracket = _about_a_model(commands, "bracket")
    bracket.add_argument("--gap", type=float, metavar="NATS", help="Stop as soon as the bracket is so narrow.")
    bracket.add_argument(
        "--delta",
        type=float,
        default=1e-3,
        metavar="P",
        help="Let probable bounds be wrong with this probability; 0.001 by default.",
    )
    bracket.add_argument("--assumed", action="store_true", help="Show bounds, too, that hold if tempering has mixed.")
    add_command(commands, "list")
    peers = add_command(commands, "peers")
    peers.add_argument("action", nargs="?", choices=["install"], help="Install libraries; without it they are listed.")
    peers.add_argument("names", nargs="*", metavar="PEER", help="Install these.")
    report = add_command(commands, "report")
    report.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        help="Write the page into this folder; by default report in the first FOLDER.",
    )
    report.add_argument("--panels", action="store_true", help="Write each model's pictures, too, as PDF and SVG.")
    report.add_argument("--tables", action="store_true", help="Write only tables, without page and pictures.")
    report.add_argument("--compare", nargs=2, metavar=("A", "B"), help="Compare two folders of sweeps, or two commits.")
    report.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="Read the records of these sweeps.")
    report.add_argument(
        "--model",
        action="append",
        metavar="NAME",
        help="Print only the table of this model; * stands for any text; may be repeated.",
    )
    profile = add_command(commands, "profile")
    profile.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="Read the records of these sweeps.")
    profile.add_argument("--all", action="store_true", help="Show all methods after each budget, not only a few.")
    profile.add_argument(
        "--page", type=Path, metavar="FILE", help="Write it as Markdown into this file, with pictures beside it."
    )
    show = add_command(commands, "show")
    rerun = add_command(commands, "rerun")
    rerun.add_argument(
        "--time-limit",
        type=float,
        metavar="SECONDS",
        help="Allow so long beyond the budget; by default as long as a sweep does.",
    )
    for command in (show, rerun):
        command.add_argument(
            "record", metavar="RECORD", help="Take the record of this path, or the one whose key or id begins so."
        )
    warm = add_command(commands, "warm")
    warm.add_argument("--backend", default="numba", metavar="NAME", help="Compile for this backend; numba by default.")
    warm.add_argument(
        "--method", action="append", metavar="NAME", help="Compile only this method; may be repeated; all by default."
    )
    warm.add_argument(
        "--precision",
        choices=["float64", "float32"],
        default="float64",
        metavar="P",
        help="Compile for float64, the default, or float32.",
    )
    publish = add_command(commands, "publish")
    publish.add_argument("--offline", action="store_true", help="Put the scripts beside it: it needs no network then.")
    add_history(commands)
    check = add_command(commands, "check")
    check.add_argument("--backend", metavar="NAME", help="Check this backend; all by default.")
    check.add_argument("--method", metavar="NAME", help="Check this method; all by default.")
    check.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="Set a setting of the method; may be repeated."
    )
    check.add_argument("--only", metavar="TEXT", help="Run only the checks that have this in their names.")
    check.add_argument("-x", dest="stop_at_first", action="store_true", help="End with the first failure.")
    check.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help="Begin no check of a pair after so many CPU seconds; those that tell most come first.",
    )
    check.add_argument(
        "--tier", choices=["native", "generic"], help="Check only kernels (native) or only array programs (generic)."
    )
    check.add_argument("--kernel", metavar="DIST", help="Check the kernels that this Python distribution brings.")
    check.add_argument("--device", default="cpu", metavar="D", help="Compute on the cpu, the default, or the gpu.")
    check.add_argument(
        "--chains",
        type=int,
        metavar="C",
        help="Run so many chains, a multiple of 64; 2048 by default; some checks run 256 or more.",
    )
    advise = _about_a_model(commands, "advise")
    advise.add_argument(
        "--target", default="marginals", metavar="WHAT", help="Ask for log_z; by default for marginals."
    )
    advise.add_argument(
        "--candidates", metavar="A,B", help="Race only these, METHOD or METHOD.BACKEND; by default all that fit."
    )
    advise.add_argument(
        "--records", type=Path, metavar="FOLDER", help="Keep the race's records here, and enter them into the history."
    )
    _add_audit(commands)
    mixing = _about_a_model(commands, "mixing")
    mixing.add_argument(
        "--tv",
        type=float,
        default=0.01,
        metavar="D",
        help="Call initial states forgotten at this distance in total variation; 0.01 by default.",
    )
    completion = add_command(commands, "completion")
    completion.add_argument("shell", choices=["bash", "zsh", "fish"], help="Write it for this shell.")
    completion.set_defaults(parser=parser)
    init = add_command(commands, "init")
    init.add_argument(
        "folder", type=Path, metavar="FOLDER", help="Write into this folder; without an option begin a history there."
    )
    kinds = init.add_mutually_exclusive_group()
    for kind in ("backend", "method", "family", "format", "metric"):
        kinds.add_argument(f"--{kind}", metavar="NEW", help=f"Write the package of a {kind} that has this name.")
    return parser


def _about_a_model(commands: Subcommands, name: str, budget: str = "so long, as 2s or 1min") -> CommandParser:
    """A command on one model, within a budget, from a seed."""
    command = add_command(commands, name)
    command.add_argument(
        "model", metavar="MODEL", help="Read this file, or take the model of this name in `spinbench list`."
    )
    add_evidence(command)
    command.add_argument("--budget", default="10s", metavar="TIME", help=f"Stop after {budget}; 10s by default.")
    command.add_argument(
        "--cpu", action="store_true", help="Count CPU seconds of all processes in place of wall-clock."
    )
    command.add_argument(
        "--seed", type=int, default=0, metavar="N", help="Draw all random numbers from this seed; 0 by default."
    )
    add_quiet_forms(command)
    return command


def _add_exact(commands: Subcommands) -> None:
    exact = add_command(commands, "exact")
    exact.add_argument(
        "model",
        metavar="MODEL",
        help="Read this file, all model files of this folder, or take a model of `spinbench list`.",
    )
    add_evidence(exact, "; of a folder, FILE.evid beside each FILE counts")
    exact.add_argument(
        "--budget",
        metavar="TIME",
        help="Stop after so long, as 2s or 1min; of a folder each model after 60s by default.",
    )
    exact.add_argument(
        "--max-gib",
        type=float,
        metavar="G",
        help="Take at most so much memory; by default half of what is free, divided by the jobs.",
    )
    exact.add_argument("--no-marginals", dest="marginals", action="store_false", help="Compute log Z alone.")
    exact.add_argument(
        "--solver", default="auto", metavar="NAME", help="Use this solver; by default auto, the cheapest that fits."
    )
    exact.add_argument(
        "--output",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="Write .MAR, .PR, .csv or .order, or of a folder .csv; may be repeated.",
    )
    exact.add_argument(
        "--joint",
        action="append",
        metavar="VARIABLE",
        help="Print the most probable states of this variable, and of others given so, together: marginal MAP.",
    )
    exact.add_argument(
        "--order", type=Path, metavar="FILE", help="Eliminate along this order, which --output FILE.order wrote."
    )
    exact.add_argument(
        "--uai-results", type=Path, metavar="FOLDER", help="Write a .PR and a .MAR file of each model into this folder."
    )
    exact.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="Answer so many models of a folder at a time; 1 by default."
    )
    add_quiet_forms(exact)


def _add_audit(commands: Subcommands) -> None:
    audit = add_command(commands, "audit")
    audit.add_argument(
        "samples", metavar="SAMPLES", help="Read .npz, .npy, .csv, a dimod SampleSet's .json or ArviZ's .nc."
    )
    audit.add_argument(
        "model", metavar="MODEL", help="Read this file, or take the model of this name in `spinbench list`."
    )
    add_evidence(audit, "; the samples are of the other variables")
    audit.add_argument(
        "--alpha",
        type=float,
        default=0.01,
        metavar="P",
        help="Let good samples fail with this probability; 0.01 by default.",
    )
    audit.add_argument(
        "--budget",
        default="10s",
        metavar="TIME",
        help="Spend so long on exact answers and bounds, as 2s or 1min; 10s by default.",
    )
    audit.add_argument(
        "--seed", type=int, default=0, metavar="N", help="Draw all random numbers from this seed; 0 by default."
    )
    audit.add_argument(
        "--output", type=Path, action="append", default=[], metavar="FILE", help="Write frequencies as .csv."
    )
    add_quiet_forms(audit)

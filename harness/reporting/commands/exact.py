"""`spinbench exact` on the command line: its options. What it needs is imported when it is called."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    """The command's options."""
    exact: argparse.ArgumentParser = commands.add_parser(
        "exact",
        help="exact log Z and marginals of a model, or of all models in a folder",
        epilog="An example: spinbench exact models --budget 60s --output answers.csv",
    )
    exact.add_argument("model", metavar="MODEL", help="a file, a name that `spinbench list` shows, or a folder")
    exact.add_argument("--evidence", metavar="FILE", help="observed variables; in a folder, FILE.evid beside each FILE")
    exact.add_argument("--budget", metavar="TIME", help="wall-clock of each model; by default 60s in a folder")
    exact.add_argument(
        "--max-gib", type=float, metavar="G", help="memory; by default half of what is free, divided by the jobs"
    )
    exact.add_argument("--no-marginals", dest="marginals", action="store_false", help="log Z alone")
    exact.add_argument("--solver", default="auto", metavar="NAME", help="by default auto, the cheapest that fits")
    exact.add_argument(
        "--output", type=Path, action="append", default=[], metavar="FILE", help=".MAR, .PR, .csv; of a folder .csv"
    )
    exact.add_argument("--uai-results", type=Path, metavar="FOLDER", help="for a .PR and a .MAR file of each model")
    exact.add_argument("--jobs", type=int, default=1, metavar="N", help="models at a time, of a folder; by default 1")


def run(arguments: argparse.Namespace) -> int:
    """Answer for one model or for a folder of them; the exit status."""
    from spinbench.models import specs
    from spinbench.reporting.commands import exact_folder, exact_model
    from spinbench.reporting.commands.exact_solving import Settings

    name = arguments.model
    in_folder = name not in specs.names() and Path(name).is_dir()
    settings = Settings.parse(
        arguments.solver,
        arguments.max_gib,
        exact_folder.DEFAULT_BUDGET if in_folder and arguments.budget is None else arguments.budget,
        max(arguments.jobs, 1),
        marginals=arguments.marginals,
    )
    if in_folder:
        exact_folder.check_options(arguments.evidence, arguments.output, arguments.jobs)
        table = next(iter(arguments.output), None)
        return exact_folder.show(Path(name), settings, table, arguments.uai_results, arguments.jobs)
    exact_model.check_options(arguments.output, arguments.uai_results, arguments.jobs)
    return exact_model.show(name, arguments.evidence, settings, arguments.output)

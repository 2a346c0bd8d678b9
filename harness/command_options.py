"""The options of each command, with a sentence on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from spinbench import command_help as shared
from spinbench.command_help import Option, option
from spinbench.foundation import defaults

# In the order in which `--help` has them.
OPTIONS: Mapping[str, Sequence[Option]] = {
    "run": [
        *shared.about_a_model("so long, as 2s or 1min, or after so many samples, as 5000"),
        option(
            "--method", default=defaults.METHOD, metavar="NAME", help="Run this method or .py file; gibbs by default."
        ),
        shared.SETTINGS,
        option("--backend", metavar="NAME", help="Compute on this backend; by default numba, if it can."),
        option("--tier", metavar="TIER", help="Run only a kernel (native) or only the array program (generic)."),
        option("--kernel", metavar="DISTRIBUTION", help="Run the kernel that this Python distribution brings."),
        option("--chains", type=int, default=16, metavar="C", help="Run so many chains; 16 by default."),
        option("--precision", default="float64", metavar="P", help="Compute in float64, the default, or float32."),
        shared.DEVICE,
        option("--target", metavar="WHAT", help="Ask for map, the heaviest state, not for marginals and log Z."),
        option("--until", metavar="ERROR", help="Stop once the error is so small: 'se<0.01' or 'log_z_se<0.1'."),
        shared.output_files("Write the answer as .MAR, .PR, .MPE or .csv; may be repeated."),
    ],
    "exact": [
        option(
            "model",
            metavar="MODEL",
            help="Read this file, all model files of this folder, or take a model of `spinbench list`.",
        ),
        shared.evidence("; of a folder, FILE.evid beside each FILE counts"),
        option(
            "--budget",
            metavar="TIME",
            help="Stop after so long, as 2s or 1min; of a folder each model after 60s by default.",
        ),
        option(
            "--max-gib",
            type=float,
            metavar="G",
            help="Take at most so much memory; by default half of what is free, divided by the jobs.",
        ),
        option("--no-marginals", dest="marginals", action="store_false", help="Compute log Z alone."),
        option(
            "--solver", default="auto", metavar="NAME", help="Use this solver; by default auto, the cheapest that fits."
        ),
        shared.output_files("Write .MAR, .PR, .csv or .order, or of a folder .csv; may be repeated."),
        option(
            "--joint",
            action="append",
            metavar="VARIABLE",
            help="Print the most probable states of this variable, and of others given so, together: marginal MAP.",
        ),
        option(
            "--order", type=Path, metavar="FILE", help="Eliminate along this order, which --output FILE.order wrote."
        ),
        option(
            "--uai-results",
            type=Path,
            metavar="FOLDER",
            help="Write a .PR and a .MAR file of each model into this folder.",
        ),
        option(
            "--jobs",
            type=int,
            default=1,
            metavar="N",
            help="Answer so many models of a folder at a time; 1 by default.",
        ),
        shared.QUIET_FORMS,
    ],
    "bracket": [
        *shared.about_a_model(),
        option("--gap", type=float, metavar="NATS", help="Stop as soon as the bracket is so narrow."),
        option(
            "--delta",
            type=float,
            default=1e-3,
            metavar="P",
            help="Let probable bounds be wrong with this probability; 0.001 by default.",
        ),
        option("--assumed", action="store_true", help="Show bounds, too, that hold if tempering has mixed."),
    ],
    "list": [option("--json", action="store_true", help="Print it as one line of JSON and nothing else.")],
    "peers": [
        option("action", nargs="?", choices=["install"], help="Install libraries; without it they are listed."),
        option("names", nargs="*", metavar="PEER", help="Install these."),
    ],
    "report": [
        option(
            "--output",
            type=Path,
            metavar="FOLDER",
            help="Write the page into this folder; by default report in the first FOLDER.",
        ),
        option("--panels", action="store_true", help="Write each model's pictures, too, as PDF and SVG."),
        option("--tables", action="store_true", help="Write only tables, without page and pictures."),
        option("--compare", nargs=2, metavar=("A", "B"), help="Compare two folders of sweeps, or two commits."),
        option("folders", nargs="*", type=Path, metavar="FOLDER", help="Read the records of these sweeps."),
        option(
            "--model",
            action="append",
            metavar="NAME",
            help="Print only the table of this model; * stands for any text; may be repeated.",
        ),
    ],
    "profile": [
        shared.SWEEPS,
        option("--all", action="store_true", help="Show all methods after each budget, not only a few."),
        option(
            "--page", type=Path, metavar="FILE", help="Write it as Markdown into this file, with pictures beside it."
        ),
        option("--html", type=Path, metavar="FILE", help="Write all cells as one page with filters into this file."),
    ],
    "show": [shared.RECORD],
    "archive": [
        option("action", choices=["list", "fetch", "add", "compare", "check"], help="What to do."),
        option("archive", nargs="?", metavar="ARCHIVE", help="Its folder or name; for fetch a tar file or an address."),
        option("folders", nargs="*", type=Path, metavar="FOLDER", help="Sweeps to add, or to compare with it."),
        option("--title", metavar="TEXT", help="Say what the archive is, a line."),
        option("--licence", metavar="NAME", help="Say under which licence its records are."),
        option("--planned", type=int, metavar="CELLS", help="Say how many cells the whole board will have."),
        option("--cells", type=int, default=10, metavar="N", help="Measure so many cells again; 10 by default."),
        option("--seed", type=int, default=0, metavar="S", help="Draw these cells by this seed; 0 by default."),
    ],
    "rerun": [
        option(
            "--time-limit",
            type=float,
            metavar="SECONDS",
            help="Allow so long beyond the budget; by default as long as a sweep does.",
        ),
        shared.RECORD,
    ],
    "warm": [
        option(
            "--backend", default=defaults.BACKEND, metavar="NAME", help="Compile for this backend; numba by default."
        ),
        option(
            "--method",
            action="append",
            metavar="NAME",
            help="Compile only this method; may be repeated; all by default.",
        ),
        option(
            "--precision",
            choices=["float64", "float32"],
            default="float64",
            metavar="P",
            help="Compile for float64, the default, or float32.",
        ),
    ],
    "publish": [option("--offline", action="store_true", help="Put the scripts beside it: it needs no network then.")],
    "record": [shared.SWEEPS],
    "gate": [
        option(
            "--base",
            metavar="COMMIT",
            help="Compare with this commit; by default the newest recorded one before the head.",
        ),
        option(
            "--head", metavar="COMMIT", help="Judge this commit; by default the newest recorded one of this branch."
        ),
        option(
            "--calibrate",
            action="store_true",
            help="Print how often the gate errs on this history, in place of a verdict.",
        ),
        option(
            "--pairs",
            metavar="TIME",
            help="Measure costs again so long, as 10min, both commits by turns, those first that rose most.",
        ),
        option(
            "--undecided",
            choices=["pass", "fail"],
            default="pass",
            help="Pass or fail where the verdict is UNDECIDED; pass by default.",
        ),
        shared.output_files("Write the report: .md, or JUnit's .xml."),
        option("--annotate", action="store_true", help="Print the verdict as an annotation on GitHub, too."),
        shared.QUIET_FORMS,
        shared.MACHINE,
    ],
    "history": [
        option("--since", metavar="COMMIT", help="Show only what comes after this commit."),
        option("--worse", action="store_true", help="Show only what got worse."),
        option("--last", type=int, metavar="N", help="Look at so many recorded commits; 60 by default."),
        shared.add_merge,
        shared.MACHINE,
    ],
    "check": [
        option("--backend", metavar="NAME", help="Check this backend; all by default."),
        option("--method", metavar="NAME", help="Check this method; all by default."),
        shared.SETTINGS,
        option("--only", metavar="TEXT", help="Run only the checks that have this in their names."),
        option("-x", dest="stop_at_first", action="store_true", help="End with the first failure."),
        option(
            "--seconds",
            type=float,
            metavar="S",
            help="Begin no check of a pair after so many CPU seconds; those that tell most come first.",
        ),
        option(
            "--tier",
            choices=["native", "generic"],
            help="Check only kernels (native) or only array programs (generic).",
        ),
        option("--kernel", metavar="DIST", help="Check the kernels that this Python distribution brings."),
        shared.DEVICE,
        option(
            "--chains",
            type=int,
            metavar="C",
            help="Run so many chains, a multiple of 64; 2048 by default; some checks run 256 or more.",
        ),
    ],
    "advise": [
        *shared.about_a_model(),
        option("--target", default="marginals", metavar="WHAT", help="Ask for log_z; by default for marginals."),
        option(
            "--candidates", metavar="A,B", help="Race only these, METHOD or METHOD.BACKEND; by default all that fit."
        ),
        option(
            "--records",
            type=Path,
            metavar="FOLDER",
            help="Keep the race's records here, and enter them into the history.",
        ),
    ],
    "audit": [
        option("samples", metavar="SAMPLES", help="Read .npz, .npy, .csv, a dimod SampleSet's .json or ArviZ's .nc."),
        shared.MODEL,
        shared.evidence("; the samples are of the other variables"),
        option(
            "--alpha",
            type=float,
            default=0.01,
            metavar="P",
            help="Let good samples fail with this probability; 0.01 by default.",
        ),
        option(
            "--budget",
            default="10s",
            metavar="TIME",
            help="Spend so long on exact answers and bounds, as 2s or 1min; 10s by default.",
        ),
        shared.SEED,
        shared.output_files("Write frequencies as .csv."),
        shared.QUIET_FORMS,
    ],
    "mixing": [
        *shared.about_a_model(),
        option(
            "--tv",
            type=float,
            default=0.01,
            metavar="D",
            help="Call initial states forgotten at this distance in total variation; 0.01 by default.",
        ),
    ],
    "completion": [option("shell", choices=["bash", "zsh", "fish"], help="Write it for this shell.")],
    "init": [
        option(
            "folder",
            type=Path,
            metavar="FOLDER",
            help="Write into this folder; without an option begin a history there.",
        ),
        shared.exclusive(
            *(
                option(f"--{kind}", metavar="NEW", help=f"Write the package of a {what} that has this name.")
                for kind, what in (
                    *((kind, kind) for kind in ("backend", "method", "family", "format", "metric")),
                    ("c-kernel", "sampler with a kernel in C"),
                    ("numba-kernel", "sampler with a kernel in Numba"),
                    ("bound", "source of bounds on log Z"),
                    ("program", "method that calls an external program"),
                )
            )
        ),
    ],
}

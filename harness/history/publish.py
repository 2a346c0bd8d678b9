"""`spinbench publish`: asv's site of the history, and the scripts that it takes from CDNs put beside it.

The site is made of a copy of the history that holds what its page can carry. asv draws the first labels of each axis,
whether they were measured or not; has a page for each benchmark, measured or not; takes milliseconds for each series,
in whose numbers it looks for steps; and lets the y-axis end at the least and the greatest number unless the unit is
seconds or bytes, so that numbers that stayed the same lie under the frame. So the copy's list of benchmarks has what
was measured, the first labels those of a measured cell, and of the series that sweeps began the newest. Nothing of asv
is changed.
"""

from __future__ import annotations

import itertools
import math
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinbench.errors import HistoryError
from spinbench.foundation import git, remarks
from spinbench.foundation.folders import cache_folder
from spinbench.history import journal, series

if TYPE_CHECKING:
    from asv.results import Results

# Folder of the site with local copies of what asv's page loads from CDNs.
VENDOR = "vendor"

# npm packages in the versions of asv 0.6's page (npm has no Stupid Table 1.0.1).
PACKAGES: Mapping[str, str] = {
    "jquery": "3.3.1",
    "flot": "0.8.3",
    "flot-orderbars": "1.0.0",
    "stupid-table-plugin": "1.1.3",
    "blueimp-md5": "2.19.0",
    "bootstrap": "3.1.1",
}

# File within the packages that replaces each address of the page, by the address's last part.
FILES: Mapping[str, str] = {
    "jquery-3.3.1.min.js": "jquery/dist/jquery.min.js",
    "jquery.flot.min.js": "flot/jquery.flot.js",
    "jquery.flot.time.min.js": "flot/jquery.flot.time.js",
    "jquery.flot.selection.min.js": "flot/jquery.flot.selection.js",
    "jquery.flot.categories.min.js": "flot/jquery.flot.categories.js",
    "jquery.flot.orderBars.js": "flot-orderbars/js/jquery.flot.orderBars.js",
    "stupidtable.min.js": "stupid-table-plugin/stupidtable.js",
    "md5.min.js": "blueimp-md5/js/md5.min.js",
    "bootstrap.min.js": "bootstrap/dist/js/bootstrap.min.js",
    "bootstrap.min.css": "bootstrap/dist/css/bootstrap.min.css",
}

NPM_SECONDS = 120.0
_ELEMENT = re.compile(r"<(?:script|link)\b[^>]*\b(?:src|href)=\"(https?://[^\"]+)\"[^>]*>")
_CDN_ATTRIBUTES = re.compile(r"\s(?:integrity|crossorigin|referrerpolicy|onerror)=\"[^\"]*\"")

# Largest number of sweep series that are published: asv takes some 10 ms for each and lists all on one page.
MAX_SERIES = 2000
SWEPT = f"{series.PREFIX}."
# Folders of asv's configuration with asv's defaults, relative to the configuration.
PATHS = {"benchmark_dir": "benchmarks", "results_dir": "results", "html_dir": "html", "env_dir": "env"}
# Folder beside the results with the copy that asv reads.
COPY = ".publishing"
# Script beside this module that widens the y-axis.
SCRIPT = "asv_site.js"

# A label for each axis.
Cell = tuple[str, ...]
Ages = dict[Cell, list[int]]


def publish(root: Path, *, offline: bool = False) -> Path:
    """Build asv's site from the history.

    Args:
        root: the checkout, or a folder inside it.
        offline: whether the site gets its scripts from npm packages, so that it works without a network.

    Returns:
        The site's index.html. Browsers let it read its data from a server only, `python -m http.server -d FOLDER`.

    Raises:
        HistoryError: no checkout, no history, asv fails; or, with `offline`, there is no npm or it fails.
    """
    checkout = git.Checkout.open(root)
    config = _load_configuration(checkout)
    results, site = Path(config["results_dir"]), Path(config["html_dir"])
    if not (results / "benchmarks.json").is_file():
        raise HistoryError(f"there is no history in {checkout.root}; `spinbench sweep` on a clean checkout starts one")
    packages = fetch_npm_packages(cache_folder() / "npm") if offline else None
    with journal.lock_history(results.parent, "publish.lock", "another `spinbench publish`"):
        folders = [results.parent / COPY, *(path.parent for path in results.parent.glob("publish-*/publish.json"))]
        for leftover in folders:  # left by a publisher that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        try:
            n_shown, n_swept = _build_site(checkout, config, folders[0])
        finally:
            shutil.rmtree(folders[0], ignore_errors=True)
        add_axis_script(site)
        if packages is not None:
            vendor_scripts(site / "index.html", packages)
    if n_shown < n_swept:
        remarks.left_out(
            f"{n_swept - n_shown} of {n_swept} series of sweeps, those measured longest ago, are not on asv's site; "
            "spinbench history and its page of changes have them"
        )
    return site / "index.html"


def _load_configuration(checkout: git.Checkout) -> dict[str, Any]:
    """asv's, with absolute paths; the commits are the checkout's, whatever address the repository has."""
    from asv import util

    stored = {**PATHS, **util.load_json(str(checkout.root / git.CONFIG), js_comments=True), "repo": ""}
    return stored | {name: str(checkout.root / stored[name]) for name in (*PATHS, "repo")}


def _build_site(checkout: git.Checkout, config: Mapping[str, Any], folder: Path) -> tuple[int, int]:
    """Have asv build the site of a copy of the history; how many series of sweeps the copy has, and how many there are.

    Args:
        checkout: of the history.
        config: asv's configuration.
        folder: to make, for links to the results beside a shorter list of benchmarks.

    Raises:
        HistoryError: asv fails, or a branch of the configuration has no commits.
    """
    from asv import util
    from asv.benchmarks import Benchmarks
    from asv.results import iter_results

    results, copy = Path(config["results_dir"]), folder / "results"
    copy.mkdir(parents=True)
    for path in results.glob("*/*.json"):
        link = copy / path.relative_to(results)
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(path)
    benchmarks = util.load_json(str(results / "benchmarks.json"), Benchmarks.api_version)
    ages_by_commit = commit_ages(checkout, config.get("branches") or ["HEAD"])
    ages_by_benchmark = cell_ages(iter_results(str(results)), benchmarks, ages_by_commit)
    swept = {
        (name, cell): ages
        for name in ages_by_benchmark
        if name.startswith(SWEPT)
        for cell, ages in ages_by_benchmark[name].items()
    }
    newest = set(sorted(swept, key=lambda name: (min(swept[name]), name))[:MAX_SERIES])
    descriptions = {
        name: shorten_description(name, description, ages_by_benchmark[name], newest)
        for name, description in benchmarks.items()
        if ages_by_benchmark[name]
    }
    listed = {name: description for name, description in descriptions.items() if all(description["params"])}
    util.write_json(str(copy / "benchmarks.json"), listed, Benchmarks.api_version)
    # Another name than asv.conf.json, by which the pages find the checkout.
    config_path = folder / "publish.json"
    util.write_json(str(config_path), {**config, "results_dir": str(copy)})
    command = [sys.executable, "-P", "-m", "asv", "publish", "--config", str(config_path)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=git.environment())
    if done.returncode or not (Path(config["html_dir"]) / "index.html").is_file():
        message = (done.stderr.strip() or done.stdout.strip() or "no word").splitlines()[-1]
        raise HistoryError(f"asv cannot publish the history: {message}")
    return len(newest), len(swept)


def shorten_description(
    name: str, description: Mapping[str, Any], ages: Ages, newest: Set[tuple[str, Cell]]
) -> dict[str, Any]:
    """A benchmark's description with the labels of the newest series, or first those of a cell with numbers."""
    if name.startswith(SWEPT):
        labels = [label for label in description["params"][0] if (name, (label,)) in newest]
        return {**description, "params": [labels]}
    if not description["params"]:
        return {**description}
    return {**description, "params": move_measured_labels_first(description["params"], ages)}


def commit_ages(checkout: git.Checkout, branches: Sequence[str]) -> dict[str, int]:
    """The commits that asv publishes, those of branches and tagged ones, each with how many newer ones there are."""
    ages: dict[str, int] = {}
    for commits in (*map(checkout.line, branches), checkout.commits_with_tags()):
        for age, commit in enumerate(commits):
            ages.setdefault(commit, age)
    return ages


def cell_ages(results: Iterable[Results], benchmarks: Mapping[str, Any], ages: Mapping[str, int]) -> dict[str, Ages]:
    """By benchmark, its combinations of labels with numbers, and the ages of the commits that have one.

    Args:
        results: asv's `Results`, one a commit.
        benchmarks: asv's descriptions by name; values of another version of a benchmark do not count.
        ages: of the commits that count.
    """
    cell_ages: dict[str, Ages] = defaultdict(lambda: defaultdict(list))
    for commit_results in (result for result in results if result.commit_hash in ages):
        for name in commit_results.get_result_keys(benchmarks):
            values = commit_results.get_result_value(name, commit_results.get_result_params(name))
            cells = itertools.product(*commit_results.get_result_params(name))
            for cell, value in zip(cells, values, strict=True):
                if value is not None and math.isfinite(value):
                    cell_ages[name][cell].append(ages[commit_results.commit_hash])
    return cell_ages


def move_measured_labels_first(params: list[list[str]], ages: Ages) -> list[list[str]]:
    """The labels of each axis, first that of the cell with numbers at the most commits, unless the first cell has some.

    Cells that the axes do not have any more are not shown.

    Args:
        params: labels by axis.
        ages: by cell, the ages of the commits that have a number.
    """
    first = tuple(values[0] for values in params)
    cells = sorted(set(ages) & set(itertools.product(*params)))
    if ages.get(first) or not cells:
        return params
    lead = max(cells, key=lambda cell: len(ages[cell]))
    return [
        [lead_label, *(value for value in values if value != lead_label)]
        for lead_label, values in zip(lead, params, strict=True)
    ]


def add_axis_script(site: Path) -> None:
    """Put the script beside a site's index and load it there.

    Raises:
        HistoryError: the index has another form than asv's.
    """
    index = site / "index.html"
    whole = index.read_text(encoding="utf-8")
    if whole.count("</head>") != 1:
        raise HistoryError(f"asv's page has no place for {SCRIPT}; pin asv<0.7")
    (site / SCRIPT).write_text(resources.files(__package__).joinpath(SCRIPT).read_text("utf-8"), encoding="utf-8")
    index.write_text(whole.replace("</head>", f'<script src="{SCRIPT}"></script>\n  </head>'), encoding="utf-8")


def fetch_npm_packages(cache: Path) -> Path:
    """The npm packages, installed into a cache unless they are there; no script of theirs is run.

    Args:
        cache: folder for them.

    Returns:
        Its node_modules.

    Raises:
        HistoryError: there is no npm, or it cannot get them.
    """
    folder = cache / "node_modules"
    if all((folder / path).is_file() for path in FILES.values()):
        return folder
    npm = shutil.which("npm")
    if npm is None:
        raise HistoryError(
            "--offline takes the scripts of asv's page from npm packages, and npm is not installed; install Node.js, "
            "or publish without --offline for a page that loads them from CDNs"
        )
    cache.mkdir(parents=True, exist_ok=True)
    requirements = [f"{name}@{version}" for name, version in PACKAGES.items()]
    # A connection that stalls is tried anew.
    options = ["--prefix", str(cache), "--ignore-scripts", "--no-audit", "--no-fund", "--no-save"]
    options.append("--fetch-timeout=20000")
    try:
        done = subprocess.run(
            [npm, "install", *options, *requirements], capture_output=True, text=True, check=False, timeout=NPM_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise HistoryError(f"npm gave no answer within {NPM_SECONDS:g} s; try again with a better network") from error
    missing = [path for path in FILES.values() if not (folder / path).is_file()]
    if done.returncode or missing:
        lines = (line for line in done.stderr.splitlines() if line.startswith(("npm error", "npm ERR")))
        reasons = (line.partition(" ")[2] for line in lines)
        reason = next(reasons, f"{', '.join(missing) or 'no file'} missing")
        raise HistoryError(f"npm cannot install {', '.join(requirements)}: {reason}")
    return folder


def vendor_scripts(index: Path, packages: Path) -> None:
    """Put the scripts beside a page and rewrite it to use them.

    Args:
        index: asv's page.
        packages: a node_modules folder with `PACKAGES`.

    Raises:
        HistoryError: the page loads something that is not in `FILES`.
    """
    folder = index.parent / VENDOR

    def local(match: re.Match[str]) -> str:
        address = match[1]
        path = FILES.get(address.rpartition("/")[2])
        if path is None:
            raise HistoryError(f"asv's page loads {address}, for which spinbench knows no npm package; pin asv<0.7")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(packages / path, target)
        return _CDN_ATTRIBUTES.sub("", match[0].replace(address, f"{VENDOR}/{path}"))

    text = _ELEMENT.sub(local, index.read_text(encoding="utf-8"))
    fonts = packages / "bootstrap" / "dist" / "fonts"
    if fonts.is_dir():
        shutil.copytree(fonts, folder / "bootstrap" / "dist" / "fonts", dirs_exist_ok=True)
    index.write_text(text, encoding="utf-8")

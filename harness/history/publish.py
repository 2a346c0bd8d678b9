"""`spinbench publish`: asv's site of the history, and the scripts that it takes from CDNs put beside it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from spinbench.errors import HistoryError
from spinbench.foundation import git
from spinbench.foundation.checkout import Checkout
from spinbench.foundation.folders import cache_folder
from spinbench.foundation.remarks import left_out
from spinbench.history import asv_site

VENDOR = "vendor"
"""Folder of the site with what would come from CDNs."""

PACKAGES: Mapping[str, str] = {
    "jquery": "3.3.1",
    "flot": "0.8.3",
    "flot-orderbars": "1.0.0",
    "stupid-table-plugin": "1.1.3",
    "blueimp-md5": "2.19.0",
    "bootstrap": "3.1.1",
}
"""npm packages in the versions that asv 0.6's page names (of Stupid Table, npm has no 1.0.1)."""

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
"""Which file of the packages stands for the last part of an address on the page."""

NPM_SECONDS = 600.0
_ELEMENT = re.compile(r"<(?:script|link)\b[^>]*\b(?:src|href)=\"(https?://[^\"]+)\"[^>]*>")
_CDN_ATTRIBUTES = re.compile(r"\s(?:integrity|crossorigin|referrerpolicy|onerror)=\"[^\"]*\"")


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
    checkout = Checkout.open(root)
    if not (checkout.root / ".asv" / "results" / "benchmarks.json").is_file():
        raise HistoryError(f"there is no history in {checkout.root}; `spinbench sweep` on a clean checkout starts one")
    packages = fetch(cache_folder() / "npm") if offline else None
    with tempfile.TemporaryDirectory(prefix="publish-", dir=checkout.root / ".asv") as folder:
        prepared = asv_site.prepare(checkout, Path(folder))
        command = [sys.executable, "-m", "asv", "publish", "--config", str(prepared.config)]
        modules = os.pathsep.join(filter(None, [str(checkout.root), os.environ.get("PYTHONPATH")]))
        environment = {**git.environment(), "PYTHONPATH": modules}  # of plugins that lie in the checkout
        done = subprocess.run(command, cwd=checkout.root, capture_output=True, text=True, check=False, env=environment)
    index = prepared.site / "index.html"
    if done.returncode or not index.is_file():
        words = (done.stderr.strip() or done.stdout.strip() or "no word").splitlines()[-1]
        raise HistoryError(f"asv cannot publish the history: {words}")
    asv_site.add_script(index.parent)
    if packages is not None:
        vendor(index, packages)
    if prepared.shown < prepared.swept:
        left_out(
            f"{prepared.swept - prepared.shown} of {prepared.swept} series of sweeps, those measured longest ago, are "
            "not on asv's site; spinbench history and its page of changes have them"
        )
    return index


def fetch(cache: Path) -> Path:
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
    wanted = [f"{name}@{version}" for name, version in PACKAGES.items()]
    options = ["--prefix", str(cache), "--ignore-scripts", "--no-audit", "--no-fund", "--no-save"]
    try:
        done = subprocess.run(
            [npm, "install", *options, *wanted], capture_output=True, text=True, check=False, timeout=NPM_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise HistoryError(f"npm gave no answer within {NPM_SECONDS:g} s; try again with a better network") from error
    missing = [path for path in FILES.values() if not (folder / path).is_file()]
    if done.returncode or missing:
        lines = [line for line in done.stderr.splitlines() if line.startswith(("npm error", "npm ERR"))]
        reason = lines[0].partition(" ")[2] if lines else f"{', '.join(missing) or 'no file'} missing"
        raise HistoryError(f"npm cannot install {', '.join(wanted)}: {reason}")
    return folder


def vendor(index: Path, packages: Path) -> None:
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

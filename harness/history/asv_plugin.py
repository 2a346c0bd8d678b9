"""asv's environments for spinbench, under one name that is the same on every machine.

asv's own put an interpreter's absolute path, or the versions of what is installed, into the names of result files and
into the parameters of the published graphs, so that a moved environment starts a new series. asv.conf.json names this
module under `plugins`.

`asv run` has no versions of cells, and measures none of others: builds of past commits are told which settings a column
of asv's table holds, and a column that `asv run` begins keeps them.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import json
import os
import platform
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asv import benchmarks, config, machine, util
from asv import results as asv_results
from asv.environment import Environment, ExistingEnvironment, get_env_name

from spinbench.errors import HistoryError
from spinbench.foundation import atomic, git, remarks
from spinbench.history import asv_series, axes, builds, journal, series
from spinbench.history.suite.cells import FAMILIES_VARIABLE, SHARED_VARIABLE
from spinbench.measuring import environment, record_types

if TYPE_CHECKING:
    from asv.repo import Repo

# Environment variable with this machine's name in the history; the default is asv's name, the host name.
MACHINE_VARIABLE = "SPINBENCH_MACHINE"
TOOL = "spinbench"
PYTHON = ".".join(platform.python_version_tuple()[:2])
# Such as spinbench-py3.11.
ENVIRONMENT = str(get_env_name(TOOL, PYTHON, {}, {}))
# File in the folder that the processes of one asv command share.
FAMILIES_FILE = "families.json"


class BuiltEnvironment(Environment):  # type: ignore[misc]
    """Builds of the commits that asv is asked for, with the libraries of the interpreter that runs asv."""

    tool_name = TOOL

    def __init__(
        self,
        conf: config.Config,
        python: str,
        requirements: dict[str, str],
        tagged_env_vars: dict[tuple[str, str], str],
    ) -> None:
        """`python` and the rest come from asv's matrix, which has no say here."""
        # asv's environment classes set this attribute before their base class reads it.
        self._requirements: dict[str, str] = {}
        super().__init__(conf, PYTHON, self._requirements, {})

    @property
    def name(self) -> str:
        """Stable: no path."""
        return ENVIRONMENT

    def check_presence(self) -> bool:
        """Whether it was made with what is installed here today."""
        return builds.is_environment_current(Path(self._path), _project_name())

    def _setup(self) -> None:
        builds.create_environment(Path(self._path), _project_name())

    def install_project(self, conf: config.Config, repo: Repo, commit_hash: str) -> None:
        """Replace the commit that is installed by another one."""
        if self._get_installed_commit_hash() != commit_hash:
            self._set_installed_commit_hash(None)
            self.checkout_project(repo, commit_hash)
            try:
                builds.install(builds.environment_python(Path(self._path)), Path(self._build_root))
            except HistoryError as error:
                raise util.ProcessError(["pip", "install", self._build_root], 1, "", str(error)) from error
            self._set_installed_commit_hash(commit_hash)
        self._set_commit_hash(commit_hash)
        _set_measurement_folder(commit_hash)

    def run(self, args: list[str], **options: object) -> Any:
        """Run its Python."""
        return self.run_executable("python", args, **options)


def _project_name() -> str:
    """The name of the repository's project; without one, asv says so in a sentence."""
    try:
        return builds.project_name(Path())
    except HistoryError as error:
        raise util.UserError(f"nothing can be built here: {error}") from error


class HereEnvironment(ExistingEnvironment):  # type: ignore[misc]
    """The interpreter that runs asv, for `asv run -E here`."""

    tool_name = "here"

    def __init__(
        self,
        conf: config.Config,
        python: str,
        requirements: dict[str, str],
        tagged_env_vars: dict[tuple[str, str], str],
    ) -> None:
        """As of the other one; what is installed here has to be of this repository."""
        if (runs := environment.foreign_source_folder(Path().resolve())) is not None:
            raise util.UserError(f"what is installed here is the code of {runs}, not that of this checkout")
        super().__init__(conf, "same", {}, {})
        self._python = PYTHON

    @property
    def name(self) -> str:
        """That of the other one: both feed the same series."""
        return ENVIRONMENT


def setup() -> None:
    """Called by asv when it loads the plugin, once per command."""
    os.environ[SHARED_VARIABLE] = str(_make_temporary_folder())
    if name := os.environ.get(MACHINE_VARIABLE):
        machine.Machine.hardcoded_machine_name = name
    # asv has changed into the folder of its configuration
    results = Path(config.Config.load(git.CONFIG).results_dir) if Path(git.CONFIG).is_file() else None
    os.environ[FAMILIES_VARIABLE] = str(write_families(_make_temporary_folder(), results and results.parent))
    if results is not None:
        load_default = machine.MachineCollection.load

        def load(name: str, _path: str | None = None) -> dict[str, str]:
            try:
                return load_machine_description(results, name) or dict(load_default(name, _path))
            except util.UserError:
                # asv would ask for the machine's details on standard input and fail in a batch job.
                return _default_machine(name)

        # `asv run` would overwrite machine.json with the file in the user's home directory.
        machine.MachineCollection.load = load
        _patch_benchmarks_save(results)
        _patch_results_save(results.parent)


def _set_measurement_folder(commit: str) -> None:
    """What benchmarks of a commit measure is shared among them, and with those of no other commit."""
    folder = _make_temporary_folder() / commit
    folder.mkdir(exist_ok=True)
    os.environ[SHARED_VARIABLE] = str(folder)


@functools.cache
def _make_temporary_folder() -> Path:
    """Where measurements are kept while the command runs; those of what is installed lie there themselves."""
    folder = tempfile.mkdtemp(prefix="spinbench-asv-")
    atexit.register(_remove_folder, folder, os.getpid())
    return Path(folder)


def _patch_benchmarks_save(results: Path) -> None:
    """`asv run` writes the descriptions of what it discovers; those of series that it never runs stay beside them."""
    save = benchmarks.Benchmarks.save

    def save_all(self: benchmarks.Benchmarks) -> None:
        self._all_benchmarks = {
            **self._all_benchmarks,
            **asv_series.benchmark_descriptions(series.SeriesIndex(results.parent / "journal")),
        }
        save(self)

    benchmarks.Benchmarks.save = save_all


def _patch_results_save(home: Path) -> None:
    """What `asv run` is about to save has settings, which the builds that come later have to have, too."""
    save = asv_results.Results.save

    def save_all(self: asv_results.Results, folder: str) -> None:
        try:
            add_configurations(Path(os.environ[SHARED_VARIABLE]), home)
            write_families(_make_temporary_folder(), home)
        except HistoryError as error:
            raise util.UserError(str(error)) from error
        finally:
            save(self, folder)

    asv_results.Results.save = save_all


def write_families(folder: Path, home: Path | None) -> Path:
    """Write which cells there are today, and which settings their columns hold.

    Args:
        shared: where to.
        home: of the history, if there is one.
    """
    configurations = series.SeriesIndex(home / "journal").configurations_by_column() if home is not None else {}
    contents = {}
    for name, family in axes.families().items():
        columns = {cell: configurations.get(family.column(cell), ()) for cell in family.cells}
        settings = [[cell, list(configs)] for cell, configs in columns.items() if configs]
        contents[name] = {**dataclasses.asdict(family), "settings_of": settings}
    path = folder / FAMILIES_FILE
    atomic.write_json(path, contents)
    return path


def add_configurations(measurements: Path, home: Path) -> None:
    """Begin columns with the settings of the cells that were measured, as a sweep does.

    Args:
        measured: the folder of a commit's measurements.
        home: of the history.

    Raises:
        HistoryError: it cannot be written.
    """
    contents = [json.loads(path.read_text()) for path in measurements.glob("*.json") if path.name != FAMILIES_FILE]
    good = [record_types.parse_record(content) for content in contents if content["status"] == "ok"]
    if good:
        with journal.lock_history(home):
            series_index = series.SeriesIndex(home / "journal")
            for record in good:
                # The record's build did not store the digests of files.
                with suppress(HistoryError):
                    series_index.add(series.identify(record), [], series.entry_column(record))


def machine_name() -> str:
    """The name of this machine in the history: SPINBENCH_MACHINE's, else asv's."""
    host = str(machine.Machine.get_unique_machine_name())
    try:
        name = str(machine.MachineCollection.load(host)["machine"])
    except util.UserError:
        name = host
    return os.environ.get(MACHINE_VARIABLE) or name


def load_machine_description(results: Path, name: str) -> dict[str, str] | None:
    """The description of a machine that the history began with, if there is one that can be read."""
    path = results / name / "machine.json"
    if not path.is_file():
        return None
    try:
        stored = dict(util.load_json(str(path), machine.Machine.api_version))
        if not all(isinstance(value, str) for key, value in stored.items() if key != "version"):
            raise ValueError("a value is no text")
    except (util.UserError, ValueError, TypeError, RecursionError) as error:
        remarks.left_out(f"{path}, which describes this machine anew: {error}")
        return None
    return {key: value for key, value in stored.items() if key != "version"}


def new_machine_description(name: str) -> dict[str, str]:
    """A new description, from the user's home or asv's defaults."""
    try:
        defaults = dict(machine.MachineCollection.load(name))
    except util.UserError:
        defaults = _default_machine(name)
    description = {key: str(value) for key, value in defaults.items() if key != "version"} | {"machine": name}
    return dict(sorted(description.items()))


def _default_machine(name: str) -> dict[str, str]:
    """asv's, but for `os`, where the kernel's version would start a series with each update."""
    return {**machine.Machine.get_defaults(), "os": platform.system(), "machine": name}


def _remove_folder(folder: str, owner_pid: int) -> None:
    # Forked children of asv also run exit handlers.
    if os.getpid() == owner_pid:
        shutil.rmtree(folder, ignore_errors=True)

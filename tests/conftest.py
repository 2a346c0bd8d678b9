"""Fixtures shared by all tests."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import thorough
from hypothesis import settings

# Tests run side by side: each process takes one thread. Read by the libraries when they are first imported.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from spinbench.backends.numba.machine_code import numba_folder  # noqa: E402
from spinbench.foundation import plugins  # noqa: E402
from spinbench.foundation.folders import cache_folder  # noqa: E402

# Packages that the tests are run without, as where they have no wheels.
for _name in os.environ.get("SPINBENCH_TESTS_WITHOUT", "").split():
    sys.modules[_name] = None  # an import of it fails

# All tests, and the processes that they start, share what one of them has compiled, whatever folder a test gives to
# exact answers. Read by the libraries when they are first imported, too.
os.environ.setdefault("NUMBA_CACHE_DIR", str(numba_folder()))
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache_folder() / "compiled" / "jax"))

settings.register_profile("spinbench", deadline=None, derandomize=True)  # machines differ; a run can be repeated
settings.load_profile("spinbench")

PluginWriter = Callable[[str, str, dict[str, dict[str, str]]], Path]


def _leave_to_thorough(items: list[pytest.Item]) -> None:
    lines = thorough.lines()
    for item in items:
        if thorough.left_out(item.nodeid, lines):
            item.add_marker(pytest.mark.thorough)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups, and pytest the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file together, so that its fixtures compile once; tests may name another group.

    Groups with slow tests go first and small ones last, so that no worker is left with a long one at the end.
    """
    _leave_to_thorough(items)
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        marker = item.get_closest_marker("xdist_group")
        if marker is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
            marker = item.get_closest_marker("xdist_group")
        assert marker is not None
        groups.setdefault(str(marker.args[0]), []).append(item)

    def rank(group: list[pytest.Item]) -> tuple[bool, int]:
        return not any(item.get_closest_marker("slow") for item in group), -len(group)

    items[:] = [item for group in sorted(groups.values(), key=rank) for item in group]


@pytest.fixture
def install_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PluginWriter]:
    """`install_plugin(distribution, source, {group: {name: attribute}})`: a module with entry points on sys.path.

    The module is named like the distribution; discovery sees it exactly as a package that pip installed.
    """
    modules = []

    def install(distribution: str, source: str, points: dict[str, dict[str, str]]) -> Path:
        (tmp_path / f"{distribution}.py").write_text(source)
        info = tmp_path / f"{distribution}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        sections = (
            f"[spinbench.{group}]\n" + "".join(f"{name} = {distribution}:{value}\n" for name, value in entries.items())
            for group, entries in points.items()
        )
        (info / "entry_points.txt").write_text("\n".join(sections))
        modules.append(distribution)
        monkeypatch.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()
        plugins.forget()
        return tmp_path

    yield install
    for name in modules:
        sys.modules.pop(name, None)
    plugins.forget()


@dataclass(frozen=True)
class Installed:
    """A package that pip installed into a folder of its own, and a folder to work in."""

    packages: Path
    work: Path

    def spinbench(self, *arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """The command line in a process that sees the package, wide enough for tables; writes no history."""
        return self.python("-m", "spinbench", *arguments, timeout=timeout)

    def python(self, *arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Python in a process that sees the package."""
        changes = {
            "PYTHONPATH": os.pathsep.join([str(self.packages), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "SPINBENCH_HISTORY": str(self.work),
            "SPINBENCH_CACHE_DIR": str(self.work / "cache"),
            "COLUMNS": "200",
        }
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.work,
            env={**os.environ, **changes},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


@pytest.fixture(scope="session")
def pip_install(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Installed]:
    """`pip_install(folder)`: builds the folder's package and installs it, without the network."""
    pytest.importorskip("pip")

    def install(source: Path) -> Installed:
        base = tmp_path_factory.mktemp(source.name)
        # building writes into the source folder
        copy = shutil.copytree(source, base / "source")
        options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "install", *options, "--target", str(base / "packages"), str(copy)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        (base / "work").mkdir()
        return Installed(base / "packages", base / "work")

    return install

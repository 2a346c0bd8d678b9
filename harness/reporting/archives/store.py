"""Archives of boards: where they lie, and how they come here."""

from __future__ import annotations

import shutil
import tarfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from spinbench.foundation.folders import cache_folder
from spinbench.measuring.archive import ArchiveError, check_shard, is_archive, read_manifest

# Folders of a checkout with archives, and the one of the cache.
BOARDS = ("boards", "docs/boards")
MAX_DOWNLOAD_BYTES = 1 << 30
TIMEOUT_SECONDS = 60.0


def cached_boards() -> Path:
    """The folder of fetched archives."""
    return cache_folder() / BOARDS[0]


def find_archives(roots: Iterable[Path]) -> dict[str, Path]:
    """Archives by their folders' names, of those below `BOARDS` of some folders, and of the cache."""
    folders = [*(root / folder for root in roots for folder in BOARDS), cached_boards()]
    archives: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.glob("*/")):
            if is_archive(path):
                archives.setdefault(path.name, path)
    return archives


def find_archive(name: str, roots: Iterable[Path]) -> Path:
    """The folder of an archive, which is its path, or its name below `BOARDS` or in the cache.

    Raises:
        ArchiveError: there is none.
    """
    if is_archive(Path(name)):
        return Path(name)
    archives = find_archives(roots)
    if name not in archives:
        known = f"there are {', '.join(archives)}" if archives else "there is none"
        raise ArchiveError(f"{name} is neither an archive's folder nor the name of an archive here; {known}")
    return archives[name]


def verify(folder: Path) -> None:
    """Raises ArchiveError where a shard is not what the archive was made with."""
    for shard in read_manifest(folder).shards:
        check_shard(folder / shard.file, shard)


def fetch(source: str) -> Path:
    """Bring an archive into the cache; one that is there is not fetched again.

    Args:
        source: a folder, a .tar, .tar.gz or .tar.xz file, or the https address of one.

    Raises:
        ArchiveError: it cannot be read, is no archive, is damaged, or is too large.
    """
    with TemporaryDirectory(dir=_made(cached_boards())) as temporary:
        path = Path(source)
        if urllib.parse.urlsplit(source).scheme in ("http", "https"):
            name = Path(urllib.parse.urlsplit(source).path).name
            if (held := cached_boards() / name.partition(".tar")[0]) and is_archive(held):
                return held
            path = _download(source, Path(temporary) / name)
        if path.is_file():
            path = _unpack(path, Path(temporary) / "unpacked")
        if not is_archive(path):
            raise ArchiveError(f"{source} is no archive; a folder with archive.json, or a tar file of one, is needed")
        manifest = read_manifest(path)
        target = cached_boards() / f"{Path(manifest.name).name}-{Path(manifest.version).name}"
        if not is_archive(target):
            verify(path)
            copy = Path(temporary) / "copy"
            copy.mkdir()
            for file in ("archive.json", *(shard.file for shard in manifest.shards)):
                shutil.copyfile(path / file, copy / file)
            copy.replace(target)
    verify(target)
    return target


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class _HttpsOnly(urllib.request.HTTPRedirectHandler):
    """Follows no redirection to another scheme."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
        if urllib.parse.urlsplit(newurl).scheme != "https":
            raise ArchiveError(f"{req.full_url} leads to {newurl}; only https is followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _download(address: str, path: Path) -> Path:
    if not address.startswith("https://"):
        raise ArchiveError(f"{address} was given; only https addresses are fetched")
    try:
        with (
            urllib.request.build_opener(_HttpsOnly).open(address, timeout=TIMEOUT_SECONDS) as answer,
            path.open("wb") as file,
        ):
            while block := answer.read(1 << 20):
                file.write(block)
                if file.tell() > MAX_DOWNLOAD_BYTES:
                    raise ArchiveError(f"{address} has more than {MAX_DOWNLOAD_BYTES >> 30} GiB; no archive has")
    except (OSError, urllib.error.URLError, ValueError) as error:
        raise ArchiveError(f"{address} cannot be fetched: {error}") from error
    return path


def _unpack(path: Path, folder: Path) -> Path:
    """The folder of the archive in a tar file, of which plain files of an archive alone are taken."""
    try:
        with tarfile.open(path) as file:
            total = 0
            for member in file:
                total += member.size
                if total > MAX_DOWNLOAD_BYTES:
                    raise ArchiveError(f"{path} holds more than {MAX_DOWNLOAD_BYTES >> 30} GiB; no archive does")
                if member.isfile():
                    file.extract(member, folder, filter="data")
    except (OSError, tarfile.TarError, EOFError, ValueError) as error:
        raise ArchiveError(f"{path} cannot be unpacked: {error}") from error
    return next((manifest.parent for manifest in sorted(folder.rglob("archive.json"))), folder)

"""Formats are found by name and by content; plugins add theirs; gzip is unpacked within bounds."""

from __future__ import annotations

import gc
import gzip
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from spinbench.errors import BrokenPluginError, ModelError
from spinbench.models import formats, load, save
from spinbench.models.files.uai import UAI
from spinbench.models.formats import uncollected
from spinbench.models.generators import grid

UAI_TEXT = "MARKOV\n2\n2 3\n1\n2 0 1\n6\n1 2 3 4 5 6\n"
FG_TEXT = "# made by hand\n1\n\n2\n0 1\n2 2\n4\n0 1.0\n1 2.0\n2 3.0\n3 4.0\n"
BQM_TEXT = json.dumps(
    {
        "type": "BinaryQuadraticModel",
        "version": {"bqm_schema": "3.0.0"},
        "use_bytes": False,
        "variable_labels": ["a", "b"],
        "variable_type": "SPIN",
        "offset": 0.5,
        "linear_biases": [1.0, 0.0],
        "quadratic_biases": [2.0],
        "quadratic_head": [0],
        "quadratic_tail": [1],
    }
)
TEXTS = {"uai": UAI_TEXT, "fg": FG_TEXT, "json": BQM_TEXT}


@pytest.fixture
def npz(tmp_path: Path) -> bytes:
    save(grid(2, 2), tmp_path / "saved.npz")
    return (tmp_path / "saved.npz").read_bytes()


@pytest.mark.parametrize("suffix", TEXTS)
@pytest.mark.parametrize("name", ["other.txt", "m", "dots.in.the.name", ".hidden", "m.uai.bak"])
def test_files_of_other_names_are_recognised(tmp_path: Path, suffix: str, name: str) -> None:
    (tmp_path / f"m.{suffix}").write_text(TEXTS[suffix])
    expected = load(tmp_path / f"m.{suffix}").content_hash
    other = tmp_path / name
    for data in (TEXTS[suffix].encode(), b"\xef\xbb\xbf" + TEXTS[suffix].replace("\n", "\r\n").encode()):
        other.write_bytes(data)
        assert load(other).content_hash == expected
        other.write_bytes(gzip.compress(data))
        assert load(other).content_hash == expected


@pytest.mark.parametrize("constant", ["0\n\n\n1\n0 2.5\n", "0\n1\n0\t0.5\n# c\n"])
def test_factor_graphs_that_begin_with_a_constant_are_recognised(tmp_path: Path, constant: str) -> None:
    text = FG_TEXT.replace("1\n\n2", f"2\n\n{constant}\n2", 1)
    for name in ("m.fg", "m", "m.txt"):
        (tmp_path / name).write_text(text)
        assert load(tmp_path / name).cardinalities == (2, 2)
    for damaged in (text.replace("0\n", "0\n7\n", 1), text.replace("2\n\n", "2\n", 1)):
        (tmp_path / "m").write_text(damaged)
        assert formats.name_of_file(tmp_path / "m") is None


def test_archives_are_recognised(tmp_path: Path, npz: bytes) -> None:
    (tmp_path / "m.dat").write_bytes(npz)
    assert load(tmp_path / "m.dat").content_hash == grid(2, 2).content_hash


@pytest.mark.parametrize("named", ["uai", "fg", "json", "npz", "UAI", "uai.gz"])
@pytest.mark.parametrize("held", TEXTS)
def test_names_that_contradict_the_content_are_refused(tmp_path: Path, named: str, held: str) -> None:
    path = tmp_path / f"m.{named}"
    path.write_text(TEXTS[held])
    if named.lower().startswith(held):
        assert load(path).name == "m"
        return
    with pytest.raises(ModelError, match=rf"^m\.{named}: the file is named as \w+ \(.*\), but holds \w+ \(\.{held}\)"):
        load(path)


@pytest.mark.parametrize("suffix", TEXTS)
def test_gzipped_files(tmp_path: Path, suffix: str) -> None:
    data = TEXTS[suffix].encode()
    (tmp_path / f"m.{suffix}").write_bytes(data)
    plain = load(tmp_path / f"m.{suffix}")
    path = tmp_path / f"m.{suffix}.gz"
    for packed in (gzip.compress(data), gzip.compress(data[:20]) + gzip.compress(data[20:]), data):
        path.write_bytes(packed)
        assert load(path).content_hash == plain.content_hash
        assert load(path).name == "m"
    path.write_bytes(gzip.compress(data.replace(b"2", b"!", 1)))
    with pytest.raises(ModelError, match=rf"m\.{suffix}\.gz"):
        load(path)


@pytest.mark.parametrize("name", ["m.uai.gz", "m.npz.gz", "M.UAI.GZ", "a.b.uai", "m.uai"])
def test_saved_models_are_packed_where_their_names_say_so(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    save(grid(3, 2, seed=1), path)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == name.lower().endswith(".gz")
    assert load(path).num_variables == 6
    assert load(path).name == name.lower().removesuffix(".gz").rpartition(".")[0].replace("m", name[:1])
    written = path.read_bytes()
    save(grid(3, 2, seed=1), path)
    assert path.read_bytes() == written


NOT_WHOLE = {
    "cut": (gzip.compress(UAI_TEXT.encode())[:-9], "is not a whole gzip archive"),
    "followed": (gzip.compress(UAI_TEXT.encode()) + b"junk", "is not a whole gzip archive"),
    "two bytes": (b"\x1f\x8b", "is not a whole gzip archive"),
    "damaged": (b"\x1f\x8b\x08\x00" + b"\xff" * 40, "is not a whole gzip archive"),
    "of nothing": (gzip.compress(b""), "the file is empty"),
    "of blanks": (gzip.compress(b"\n \n"), "nothing but white space"),
    "packed twice": (gzip.compress(gzip.compress(UAI_TEXT.encode())), "this is a binary file"),
}


@pytest.mark.parametrize("what", NOT_WHOLE)
def test_archives_that_are_not_whole(tmp_path: Path, what: str) -> None:
    packed, words = NOT_WHOLE[what]
    path = tmp_path / "m.uai.gz"
    path.write_bytes(packed)
    with pytest.raises(ModelError, match=words):
        load(path)


def test_files_without_content(tmp_path: Path) -> None:
    (tmp_path / "m").touch()
    with pytest.raises(ModelError, match="m: the file is empty"):
        load(tmp_path / "m")
    (tmp_path / "m.uai").mkdir()
    with pytest.raises(ModelError, match=r"m\.uai: this is a folder; a model file is needed$"):
        load(tmp_path / "m.uai")


def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.uai")
    with pytest.raises(ModelError, match=r"m\.uai: this is a pipe or a device; a file is needed"):
        load(tmp_path / "m.uai")


def test_only_energies_have_a_temperature(tmp_path: Path) -> None:
    (tmp_path / "m.uai").write_text(UAI_TEXT)
    for source in (tmp_path / "m.uai", "libdai/testfast"):
        with pytest.raises(ModelError, match=r"beta = 2\.0 was given, but"):
            load(source, beta=2.0)
    (tmp_path / "m").write_text(BQM_TEXT)
    assert load(tmp_path / "m", beta=2.0).log_constant == 2 * load(tmp_path / "m").log_constant


def test_a_bomb_takes_no_more_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UAI, "limit", 4 * 2**20)
    path = tmp_path / "m.uai.gz"
    path.write_bytes(gzip.compress(b"MARKOV\n" + b" " * 2**28, 1))
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match="the file is longer than 4 MiB, the most that is read of this format"):
            load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * 2**20


PLUGIN = '''
from spinbench.api import FactorGraph, Format, ModelFile
from spinbench.errors import ModelError


class Coins(Format):
    """A line a coin: the probability of heads."""

    suffixes = (".coins", ".json")
    summary = "coins"

    def recognises(self, head):
        return head.startswith(b"coins")

    def read(self, file):
        lines = file.text().decode().splitlines()[1:]
        if lines == ["none"]:
            return None
        if lines == ["damaged"]:
            raise ModelError(f"{file.name}, line 2: no number")
        tables = [((v,), [1 - float(p), float(p)]) for v, p in enumerate(lines)]
        return FactorGraph.from_tables([2] * len(lines), tables)

    def write(self, model):
        return b"coins\\n0.25\\n"


class Twin(Coins):
    pass


class Greedy(Coins):
    suffixes = (".greedy",)

    def recognises(self, head):
        return True


class Stumbles(Coins):
    suffixes = (".stumbles",)

    def recognises(self, head):
        return head.startswith(b"coins")

    def read(self, file):
        raise KeyError("by\\nnought")

    def write(self, model):
        return "coins"


class Asked(Coins):
    suffixes = (".asked",)

    def recognises(self, head):
        raise ZeroDivisionError("by nought")


class Unmade(Coins):
    def __init__(self):
        raise ZeroDivisionError("by nought")


class Grasping(Coins):
    suffixes = (".uai", ".first.npz")


class Seizing(Grasping):
    def recognises(self, head):
        return head.startswith(b"MARKOV")


class Nameless(Coins):
    suffixes = ("coins",)


class Half(Format):
    suffixes = (".half",)


function = len
'''


@pytest.fixture
def plugin(install_plugin: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], None]:
    def install(names: dict[str, str]) -> None:
        formats._loaded.cache_clear()
        install_plugin("spinbench_coins", PLUGIN, {"formats": names})

    yield install
    formats._loaded.cache_clear()


def test_a_plugins_format_is_read_and_written(tmp_path: Path, plugin: Callable[[dict[str, str]], None]) -> None:
    plugin({"coins": "Coins"})
    assert "coins" in formats.names()
    for name in ("a.coins", "a.coins.gz", "a.json", "other"):
        (tmp_path / name).write_text("coins\n0.25\n0.5\n")
        assert load(tmp_path / name).cardinalities == (2, 2)
    save(grid(1, 2), tmp_path / "b.coins")
    assert load(tmp_path / "b.coins").name == "b"
    (tmp_path / "m.json").write_text(BQM_TEXT)
    assert load(tmp_path / "m.json").labels == ("a", "b")
    (tmp_path / "no.coins").write_text("coins\nnone")
    with pytest.raises(BrokenPluginError, match=r"Coins read no\.coins and returned a NoneType"):
        load(tmp_path / "no.coins")


def test_errors_of_readers_name_the_file_once(tmp_path: Path, plugin: Callable[[dict[str, str]], None]) -> None:
    """Those of a model's constructor, which knows no file, too."""
    plugin({"coins": "Coins"})
    for content, words in (("damaged", r"^m\.coins, line 2: no number$"), ("2.0", r"^m\.coins: .*factor 0")):
        (tmp_path / "m.coins").write_text(f"coins\n{content}\n")
        with pytest.raises(ModelError, match=words):
            load(tmp_path / "m.coins")


def test_files_that_several_formats_take_are_refused(tmp_path: Path, plugin: Callable[[dict[str, str]], None]) -> None:
    plugin({"coins": "Coins", "greedy": "Greedy"})
    path = tmp_path / "m.txt"
    path.write_text("coins\n0.5\n")
    with pytest.raises(ModelError, match=r"m.txt: several formats take this file, Coins .* or Greedy \(.greedy\)"):
        load(path)
    (tmp_path / "m.uai").write_text(UAI_TEXT)
    assert load(tmp_path / "m.uai").cardinalities == (2, 3)  # its own format knows it


def test_readers_and_writers_that_raise_are_named(tmp_path: Path, plugin: Callable[[dict[str, str]], None]) -> None:
    plugin({"stumbles": "Stumbles", "asked": "Asked"})
    for name in ("m.stumbles", "m.asked", "m"):
        (tmp_path / name).write_text("coins\n0.5\n")
    for name in ("m.stumbles", "m"):
        with pytest.raises(BrokenPluginError, match=rf"Stumbles failed to read {name}: KeyError: 'by\\nnought'"):
            load(tmp_path / name)
    with pytest.raises(BrokenPluginError, match="Asked failed to recognise a file: ZeroDivisionError: by nought"):
        load(tmp_path / "m.asked")
    (tmp_path / "other").write_text("none")
    with pytest.raises(ModelError, match=r"of a known format.*Asked failed to recognise a file"):
        load(tmp_path / "other")
    with pytest.raises(BrokenPluginError, match=r"Stumbles wrote a str; bytes are needed"):
        save(grid(1, 2), tmp_path / "new.stumbles")
    assert not (tmp_path / "new.stumbles").exists()


def test_built_in_suffixes_are_written_as_ever(tmp_path: Path, plugin: Callable[[dict[str, str]], None]) -> None:
    plugin({"a": "Grasping", "b": "Coins", "c": "Twin"})
    save(grid(1, 2), tmp_path / "m.uai")
    assert (tmp_path / "m.uai").read_text().startswith("MARKOV")
    save(grid(1, 2), tmp_path / "m.first.npz")
    assert (tmp_path / "m.first.npz").read_text().startswith("coins")
    with pytest.raises(ModelError, match=r"several formats write this file, Coins .* or Twin .*; uninstall one"):
        save(grid(1, 2), tmp_path / "m.coins")


def test_built_in_suffixes_are_read_as_ever(tmp_path: Path, plugin: Callable[[dict[str, str]], None]) -> None:
    """Others have what spinbench's own does not recognise, and the list says so."""
    plugin({"a": "Grasping", "b": "Seizing", "c": "Coins", "d": "Twin"})
    for name in ("m.uai", "other"):
        (tmp_path / name).write_text(UAI_TEXT)
        assert load(tmp_path / name).cardinalities == (2, 3)
    (tmp_path / "m.uai").write_text("coins\n0.5\n")
    assert load(tmp_path / "m.uai").cardinalities == (2,)
    (tmp_path / "m.uai").write_text("MARKOV 2 2")
    with pytest.raises(ModelError, match=r"^m.uai, line 1, token '2': 2 variables are claimed"):
        load(tmp_path / "m.uai")
    (tmp_path / "m.coins").write_text("coins\n0.5\n")
    with pytest.raises(ModelError, match=r"several formats take this file, Coins .* or Twin .*; uninstall one$"):
        load(tmp_path / "m.coins")
    said = formats.claims()
    assert [line.partition(" (")[0] for line in said] == ["format 'a'", "format 'b'", "format 'c'", "format 'd'"]
    assert "reads .uai files where UAI does not recognise them, and writes none: they are spinbench's" in said[0]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Nameless", r"has the suffixes \('coins',\); a tuple such as \('.uai',\) is needed"),
        ("Half", "lacks read and recognises"),
        ("function", "is <built-in function len>; a subclass of spinbench.api.Format is needed"),
        ("Missing", "failed on import: AttributeError"),
        ("Unmade", "cannot be made: ZeroDivisionError: by nought"),
    ],
)
def test_broken_plugins_hurt_nobody_else(
    tmp_path: Path, plugin: Callable[[dict[str, str]], None], name: str, words: str
) -> None:
    plugin({"mine": name})
    with pytest.raises(BrokenPluginError, match=words):
        formats.load("mine")
    assert list(formats.broken()) == ["mine"]
    (tmp_path / "m.uai").write_text(UAI_TEXT)
    assert load(tmp_path / "m.uai").cardinalities == (2, 3)
    (tmp_path / "m.mine").write_text("x")
    with pytest.raises(ModelError, match="format 'mine'"):
        load(tmp_path / "m.mine")


@pytest.mark.parametrize("running", [True, False])
def test_it_rests_inside_and_is_left_as_it_was(running: bool) -> None:
    before = gc.isenabled()
    (gc.enable if running else gc.disable)()
    try:
        with uncollected(), uncollected():
            assert not gc.isenabled()
        assert gc.isenabled() == running
        with pytest.raises(ValueError, match="inside"), uncollected():
            raise ValueError("inside")
        assert gc.isenabled() == running
    finally:
        (gc.enable if before else gc.disable)()

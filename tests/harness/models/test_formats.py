"""Formats are found by name and by content; plugins add theirs; gzip is unpacked."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from small_model_files import BINARY, GOOD

from spinbench.errors import BrokenPluginError, ModelError
from spinbench.models import formats, load, save
from spinbench.models.files.format import ModelFile
from spinbench.models.generators import grid

UAI_TEXT = "MARKOV\n2\n2 3\n1\n2 0 1\n6\n1 2 3 4 5 6\n"
FG_TEXT = "# made by hand\n1\n\n2\n0 1\n2 2\n4\n0 1.0\n1 2.0\n2 3.0\n3 4.0\n"


@pytest.mark.parametrize("name", ["other.txt", "m", "dots.in.the.name", ".hidden", "m.uai.bak", "m.gz"])
@pytest.mark.parametrize("kind", GOOD)
def test_files_of_other_names_are_recognised_packed_or_not(write, kind: str, name: str) -> None:
    data = GOOD[kind]
    if formats.load(kind).by_name:
        pytest.skip("the name alone tells files of this format")
    model = formats.load(kind).read(ModelFile("m", data))
    mark = b"" if kind in BINARY else b"\xef\xbb\xbf"
    for content in (data, mark + data, gzip.compress(data), gzip.compress(data[:20]) + gzip.compress(data[20:])):
        assert load(write(name, content)).content_hash == model.content_hash


@pytest.mark.parametrize("end", ["uai", "fg", "json", "npz", "UAI", "uai.gz"])
@pytest.mark.parametrize("kind", ["uai", "libdai", "bqm"])
def test_names_that_contradict_the_content_are_refused(write, refusal, end: str, kind: str) -> None:
    suffix = formats.load(kind).suffixes[0]
    if f".{end.lower()}".startswith(suffix):
        assert load(write(f"m.{end}", GOOD[kind])).name == "m"
        return
    message = rf"m\.{end}: the file is named as \w+ \(.*\), but holds \w+ \({re.escape(suffix)}\)"
    assert re.match(message, refusal(f"m.{end}", GOOD[kind]))


@pytest.mark.parametrize("constant", ["0\n\n\n1\n0 2.5\n", "0\n1\n0\t0.5\n# c\n"])
def test_factor_graphs_that_begin_with_a_constant_are_recognised(write, constant: str) -> None:
    text = FG_TEXT.replace("1\n\n2", f"2\n\n{constant}\n2", 1)
    for name in ("m.fg", "m", "m.txt"):
        assert load(write(name, text)).cardinalities == (2, 2)
    for damaged in (text.replace("0\n", "0\n7\n", 1), text.replace("2\n\n", "2\n", 1)):
        assert formats.detect_format_name(write("m", damaged)) is None


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
        formats._load_all.cache_clear()
        install_plugin("spinbench_coins", PLUGIN, {"formats": names})

    yield install
    formats._load_all.cache_clear()


def test_a_plugins_format_is_read_and_written(write, tmp_path: Path, plugin: Callable[[dict[str, str]], None]) -> None:
    plugin({"coins": "Coins"})
    assert "coins" in formats.names()
    for name in ("a.coins", "a.coins.gz", "a.json", "other"):
        assert load(write(name, "coins\n0.25\n0.5\n")).cardinalities == (2, 2)
    save(grid(1, 2), tmp_path / "b.coins")
    assert load(tmp_path / "b.coins").name == "b"
    assert load(write("m.json", GOOD["bqm"])).labels == ("a", ("b", 1))


@pytest.mark.parametrize(
    ("names", "file", "content", "error", "words"),
    [
        ("Coins", "m.coins", "coins\nnone", BrokenPluginError, r"Coins read m\.coins and returned a NoneType"),
        ("Coins", "m.coins", "coins\ndamaged\n", ModelError, r"^m\.coins, line 2: no number$"),
        ("Coins", "m.coins", "coins\n2.0\n", ModelError, r"^m\.coins: .*factor 0"),
        (
            "Coins Greedy",
            "m.txt",
            "coins\n0.5",
            ModelError,
            r"m.txt: several formats take this file, Coins .* or Greedy \(",
        ),
        (
            "Coins Twin",
            "m.coins",
            "coins\n0.5",
            ModelError,
            r"several formats take this file, Coins .*Twin .*; uninstall one$",
        ),
        (
            "Stumbles",
            "m.stumbles",
            "coins\n",
            BrokenPluginError,
            r"Stumbles failed to read m\.stumbles: KeyError: 'by\\nnought'",
        ),
        ("Stumbles", "m", "coins\n", BrokenPluginError, r"Stumbles failed to read m: KeyError: 'by\\nnought'"),
        ("Asked", "m.asked", "x", BrokenPluginError, "Asked failed to recognise a file: ZeroDivisionError: by nought"),
        ("Asked", "m", "none", ModelError, "of a known format.*Asked failed to recognise a file"),
        (
            "Nameless",
            "m.mine",
            "x",
            ModelError,
            r"'nameless'.* has the suffixes \('coins',\); a tuple such as \('.uai',\)",
        ),
        ("Half", "m.mine", "x", ModelError, "format 'half'.* lacks read and recognises"),
        (
            "function",
            "m.mine",
            "x",
            ModelError,
            "is <built-in function len>; a subclass of spinbench.api.Format is needed",
        ),
        ("Missing", "m.mine", "x", ModelError, "format 'missing'.* failed on import: AttributeError"),
        ("Unmade", "m.mine", "x", ModelError, "format 'unmade'.* cannot be made: ZeroDivisionError: by nought"),
    ],
)
def test_plugins_that_fail_are_named_and_hurt_nobody_else(
    write, plugin: Callable[[dict[str, str]], None], names: str, file: str, content: str, error: type, words: str
) -> None:
    plugin({name.lower(): name for name in names.split()})
    assert load(write("m.uai", UAI_TEXT)).cardinalities == (2, 3)  # its own format knows it
    with pytest.raises(error, match=words):
        load(write(file, content))


def test_what_is_no_content_is_not_written(tmp_path: Path, plugin: Callable[[dict[str, str]], None]) -> None:
    plugin({"stumbles": "Stumbles", "half": "Half"})
    with pytest.raises(BrokenPluginError, match=r"Stumbles wrote a str; bytes are needed"):
        save(grid(1, 2), tmp_path / "new.stumbles")
    assert not (tmp_path / "new.stumbles").exists()
    assert list(formats.load_errors()) == ["half"]
    with pytest.raises(BrokenPluginError, match="lacks read and recognises"):
        formats.load("half")


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
    conflicts = formats.describe_suffix_conflicts()
    assert [line.partition(" (")[0] for line in conflicts] == ["format 'a'", "format 'b'", "format 'c'", "format 'd'"]
    assert "reads .uai files where UAI does not recognise them, and writes none: they are spinbench's" in conflicts[0]

"""Reads mutated files of one kind as commands do, in a process of its own: `reader.py KIND SEED COUNT FOLDER`.

FOLDER is the one that `made` has filled. Prints a line of JSON: how many files were read and how many of them refused,
the most CPU seconds and MiB that one took, and a line for each with which neither went well.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import random
import resource
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from small_model_files import GOOD, WORDS

import spinbench
from spinbench import cli
from spinbench.errors import SpinbenchError
from spinbench.models import generators, to_factor_graph

MODEL = generators.grid(3, 3, seed=0)
MOST_SECONDS, MOST_BYTES = 5.0, 2**31
NUMBERS = (b"-1", b"0", b"1e308", b"NaN", b"null", b"[]", b"{}", b'""', b"18446744073709551616", b'"\\ud800"', b"[[[[")

Reader = Callable[[bytes], None]


def mutated(data: bytes, others: list[bytes], draw: random.Random) -> bytes:
    """One to four changes: of a byte, a piece, a number, by a word, or a piece of another file."""
    found = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        at, length = draw.randrange(len(found) + 1), draw.choice((0, 1, 1, 4, 30, 1000))
        match draw.randrange(7):
            case 0:
                found = found[:at]
            case 1:
                del found[at : at + length]
            case 2:
                found[at : at + 1] = bytes([draw.randrange(256)])
            case 3:
                found[at:at] = found[at : at + length] * draw.choice((1, 2, 50))
            case 4:
                found[at : at + draw.choice((0, 1, 5))] = draw.choice(WORDS)
            case 5:
                other = draw.choice(others)
                begin = draw.randrange(len(other) + 1)
                found[at:at] = other[begin : begin + length]
            case 6:
                _replace_a_number(found, draw)
    return bytes(found)


def _replace_a_number(data: bytearray, draw: random.Random) -> None:
    places = [k for k, byte in enumerate(data) if byte in b"0123456789"]
    if places:
        at = draw.choice(places)
        end = at
        while end < len(data) and data[end] in b"0123456789.eE+-":
            end += 1
        data[at:end] = draw.choice(NUMBERS)


def command(*words: str, allowed: tuple[int, ...] = (0, 1)) -> None:
    """The command line, in this process: a sentence is an error as of the library, a traceback one of any kind."""
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        status = cli.main(list(words))
    if status == 2:
        *others, sentence = complained.getvalue().removesuffix("\n").split("\nspinbench: ")
        assert not any("\n" in other for other in others), complained.getvalue()
        raise SpinbenchError(sentence)
    assert status in allowed, (status, complained.getvalue())


def model_reader(name: str, suffix: str) -> Reader:
    path = Path(f"model{suffix}").absolute()

    def read(data: bytes) -> None:
        path.write_bytes(data)
        to_factor_graph(spinbench.load(path))

    return read


def read_evidence(data: bytes) -> None:
    Path("model.uai").write_bytes(GOOD["uai"])
    Path("model.evid").write_bytes(data)
    command("run", "model.uai", "--method", "exact", "--backend", "numpy", "--evidence", "model.evid")


def record_reader(folder: Path) -> Reader:
    """A good record stands beside it."""
    good = next((folder / "sweep" / "records").glob("record-*.json"))
    shutil.copytree(folder / "sweep", "sweep", dirs_exist_ok=True)
    place = Path("sweep/records/record-0123456789abcdef.json")

    def read(data: bytes) -> None:
        place.write_bytes(data)
        command("report", "sweep", "--model", "boltzmann/neural15")
        command("profile", "sweep")

    assert good.exists()
    return read


def journal_reader(folder: Path) -> Reader:
    shutil.copytree(folder / "history", "history", dirs_exist_ok=True)
    entries = sorted(Path("history/.asv/journal").rglob("record-*.json"))
    os.environ["SPINBENCH_HISTORY"] = str(Path("history").absolute())
    place = entries[0].with_name("record-0123456789abcdef.json").absolute()

    def read(data: bytes) -> None:
        place.write_bytes(data)
        command("history")

    return read


def results_reader(folder: Path) -> tuple[list[bytes], Reader]:
    """Of asv's files in a history, which are made again from the journal."""
    shutil.copytree(folder / "history", "history", dirs_exist_ok=True)
    shutil.copytree(folder / "sweep", "sweep", dirs_exist_ok=True)
    os.environ["SPINBENCH_HISTORY"] = str(Path("history").absolute())
    places = sorted(Path("history/.asv/results").rglob("*.json"))
    whole = [path.read_bytes() for path in places]

    def read(data: bytes) -> None:
        chosen = random.Random(data).randrange(len(places))
        for k, place in enumerate(places):
            place.write_bytes(data if k == chosen else whole[k])
        command("record", "sweep")
        command("history")

    return whole, read


def read_command(data: bytes) -> None:
    """Of a sweep to be resumed."""
    from spinbench.sweeping.arguments import Arguments

    Path("resumed").mkdir(exist_ok=True)
    Path("resumed/sweep.json").write_bytes(data)
    Arguments.parse(["--resume", "resumed"])


def answer_reader() -> Reader:
    """Of exact answers: what is not whole is found again."""
    from spinbench.reference import cache

    right = spinbench.exact(MODEL, cache=False).log_z
    spinbench.exact(MODEL)
    place = cache.path(MODEL, "auto")

    def read(data: bytes) -> None:
        place.write_bytes(data)
        assert abs(spinbench.exact(MODEL).log_z - right) < 1e-9, "another answer"

    return read


def code_reader() -> Reader:
    """Of machine code: what is not whole is compiled again."""
    from spinbench.backends.numba import kernel_cache

    folder = Path("kernel")
    folder.mkdir(exist_ok=True)
    whole = {folder / "kernel.nbi": b"index", folder / "kernel.1.nbc": bytes(range(256))}
    for file, content in whole.items():
        file.write_bytes(content)
    kernel_cache._seal(folder)

    def read(data: bytes) -> None:
        chosen = random.Random(data).choice(sorted(whole))
        for file, content in whole.items():
            file.write_bytes(data if file == chosen else content)
        assert kernel_cache.is_whole(folder) == (data == whole[chosen]), "other code"

    return read


def reader(kind: str, folder: Path) -> tuple[list[bytes], Reader]:
    """Good files of a kind, and what reads one that may not be."""
    if kind.startswith("model "):
        name = kind.removeprefix("model ")
        data = gzip.compress(GOOD["uai"]) if name == "uai.gz" else GOOD[name]
        return [data], model_reader(name, {"npz": ".npz", "uai.gz": ".uai.gz"}.get(name, f".{name}"))
    records = [path.read_bytes() for path in sorted((folder / "sweep" / "records").glob("record-*.json"))]
    match kind:
        case "evidence":
            return [b"2 0 1 2 0\n", b"1\n1 1 1\n"], read_evidence
        case "record":
            return records, record_reader(folder)
        case "journal":
            return records, journal_reader(folder)
        case "asv's results":
            return results_reader(folder)
        case "resumed sweep":
            return [(folder / "sweep" / "sweep.json").read_bytes()], read_command
        case "exact answer":
            read = answer_reader()
            from spinbench.reference import cache

            return [cache.path(MODEL, "auto").read_bytes()], read
        case "machine code":
            read = code_reader()
            return [path.read_bytes() for path in Path().glob("kernel/kernel*.nb?")], read
    raise KeyError(kind)


def main(kind: str, seed: int, count: int, folder: Path) -> dict[str, object]:
    good, read = reader(kind, folder)
    others = [*good, *GOOD.values()]
    draw = random.Random(f"{kind} {seed}")
    _limit_memory()
    refused, slowest, wrong = 0, 0.0, []
    for number in range(count):
        data = mutated(draw.choice(good), others, draw)
        since = time.process_time()
        try:
            read(data)
        except SpinbenchError as error:
            refused += 1
            if "\n" in str(error) or len(str(error)) > 2000:
                wrong.append(f"{number}: not one sentence: {str(error)[:300]!r}")
        except BaseException as error:
            wrong.append(f"{number}: {type(error).__name__}: {str(error)[:300]}")
        took = time.process_time() - since
        slowest = max(slowest, took)
        if took > MOST_SECONDS:
            wrong.append(f"{number}: took {took:.1f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"read": count, "refused": refused, "slowest": slowest, "mib": peak, "wrong": wrong}


def _limit_memory() -> None:
    """What asks for more than two GiB fails, which counts."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MOST_BYTES, now + MOST_BYTES))


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))))

"""Which format a file is of, by the end of its name and by how it begins; entry points in `spinbench.formats`."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from spinbench.errors import BrokenPluginError, ModelError, SpinbenchError
from spinbench.foundation import plugins
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.files.format import Format, ModelFile, unpacked_name
from spinbench.models.files.text import read_head
from spinbench.models.pairwise import PairwiseModel

Model = PairwiseModel | FactorGraph


def names() -> list[str]:
    """Registered names, sorted; reads metadata only."""
    return list(plugins.entry_points("formats"))


def load(name: str) -> Format:
    """The format of a name.

    Raises:
        UnknownNameError: no such format; the closest names are offered.
        BrokenPluginError: the plugin raised on import or when it was made, or is no `Format` with suffixes.
    """
    found: Format = plugins.made("formats", name, _malformed)
    return found


def broken() -> dict[str, str]:
    """Formats that cannot be used, each with the reason; imports all of them."""
    return _loaded()[1]


def working() -> dict[str, Format]:
    """All others, by name."""
    return _loaded()[0]


def suffixes(*, written: bool = False) -> list[str]:
    """All that name a format; or those that models can be written to."""
    return sorted({suffix for each in working().values() if each.writes or not written for suffix in each.suffixes})


def of_name(name: str) -> list[Format]:
    """Those of which a file of this name may be."""
    plain = unpacked_name(name).lower()
    return [each for each in working().values() if plain.endswith(each.suffixes)]


def of_file(path: Path) -> Format:
    """The one format that a file is of.

    A file whose name says nothing is recognised by its content, unless its format is told by names alone. Where name
    and content disagree, it is refused. Of several that take a file, it is the one of the longest suffix, spinbench's
    own before others'.

    Raises:
        ModelError: the file cannot be read; no format takes it, or several do, or another than its name says.
        BrokenPluginError: a format that the file is named as raised when it was asked.
    """
    head, named = read_head(path), of_name(path.name)
    if not head:
        raise ModelError(f"{path}: the file is empty")
    fitting, failed = _taking(named, head)
    if fitting:
        return _only(path, fitting)
    if failed:
        raise BrokenPluginError("; ".join(failed))
    others, failed = _taking([each for each in working().values() if each not in named and not each.by_name], head)
    if not named:
        return _only(path, others, failed)
    if others:
        raise ModelError(f"{path.name}: the file is named as {_titles(named)}, but holds {_titles(others)}; rename it")
    return _only(path, named)


def name_of_file(path: Path) -> str | None:
    """The name of `of_file`'s format; None where there is none."""
    with suppress(ModelError, BrokenPluginError):
        chosen = of_file(path)
        return next(name for name, each in working().items() if each is chosen)
    return None


def of_written(path: Path) -> Format:
    """The format that a file of this name is written in: of the longest suffix, spinbench's own before others'.

    Raises:
        ModelError: there is none, or there are several.
    """
    found = _first(path, [each for each in of_name(path.name) if each.writes])
    if len(found) == 1:
        return found[0]
    if found:
        raise ModelError(f"{path}: several formats write this file, {_titles(found)}; uninstall one")
    *others, last = suffixes(written=True)
    raise ModelError(f"{path}: models are written to {', '.join(others)} and {last} files")


def claims() -> tuple[str, ...]:
    """A sentence for each format of others with a suffix of spinbench's."""
    own = {suffix: each for each in working().values() if _is_own(each) for suffix in each.suffixes}
    return tuple(
        f"{plugins.titled('formats', name)} reads {suffix} files where {type(own[suffix]).__name__} does not recognise "
        "them, and writes none: they are spinbench's"
        for name, each in working().items()
        for suffix in each.suffixes
        if suffix in own and not _is_own(each)
    )


def read(chosen: Format, file: ModelFile) -> Model:
    """The model of a file.

    Raises:
        ModelError: the file holds none.
        BrokenPluginError: the reader returned something else, or raised what is no SpinbenchError.
    """
    try:
        with uncollected():
            model = _answer(chosen, f"read {file.name}", lambda: chosen.read(file))
    except ModelError as error:  # of a model's constructor, which knows no file
        if file.name in str(error):
            raise
        raise ModelError(f"{file.name}: {error}") from error
    if not isinstance(model, Model):
        raise BrokenPluginError(
            f"{_path(chosen)} read {file.name} and returned a {type(model).__name__}; "
            "a PairwiseModel or a FactorGraph is needed"
        )
    return model


def written(chosen: Format, model: Model) -> bytes:
    """The content of a model's file.

    Raises:
        ModelError: the format cannot hold it.
        BrokenPluginError: the writer returned no bytes, or raised what is no SpinbenchError.
    """
    data = _answer(chosen, f"write {model.name}", lambda: chosen.write(model))
    if not isinstance(data, bytes):
        raise BrokenPluginError(f"{_path(chosen)} wrote a {type(data).__name__}; bytes are needed")
    return data


def _answer(chosen: Format, task: str, call: Callable[[], object]) -> object:
    """What a format gives; a sentence of its own is passed on, anything else that it raises is a broken plugin."""
    try:
        return call()
    except SpinbenchError:
        raise
    except (Exception, SystemExit) as error:
        raise BrokenPluginError(f"{_path(chosen)} failed to {task}: {plugins.told(error)}") from error


def _taking(asked: list[Format], head: bytes) -> tuple[list[Format], list[str]]:
    """Those that recognise a file by how it begins, and of those that raise what they raised."""
    found, failed = [], []
    for each in asked:
        try:
            if each.recognises(head):
                found.append(each)
        except (Exception, SystemExit) as error:
            failed.append(f"{_path(each)} failed to recognise a file: {plugins.told(error)}")
    return found, failed


def _path(chosen: Format) -> str:
    return f"{type(chosen).__module__}.{type(chosen).__qualname__}"


def _first(path: Path, found: list[Format]) -> list[Format]:
    """Those of the longest suffix that a file's name ends with; of these spinbench's own, if there are such."""
    plain = unpacked_name(path.name).lower()

    def rank(each: Format) -> tuple[int, bool]:
        return max((len(suffix) for suffix in each.suffixes if plain.endswith(suffix)), default=0), _is_own(each)

    return [each for each in found if rank(each) == max(map(rank, found))]


def _is_own(each: Format) -> bool:
    return type(each).__module__.startswith("spinbench.")


def _only(path: Path, found: list[Format], failing: Sequence[str] = ()) -> Format:
    first = _first(path, found)
    if len(first) == 1:
        return first[0]
    if first:
        advice = "uninstall one" if of_name(path.name) else "name it by one of them"
        raise ModelError(f"{path.name}: several formats take this file, {_titles(first)}; {advice}")
    failed = "".join(f"; {reason}" for reason in (*broken().values(), *failing))
    raise ModelError(
        f"{path}: neither name nor content is that of a known format; files that end in {', '.join(suffixes())} are "
        f"read as models, gzipped ones, too{failed}"
    )


def _titles(found: list[Format]) -> str:
    return " or ".join(f"{type(each).__name__} ({', '.join(each.suffixes)})" for each in found)


@cache
def _loaded() -> tuple[dict[str, Format], dict[str, str]]:
    return plugins.sorted_out("formats", load)


def _malformed(found: Any) -> str:
    """Why what an entry point names is no format; empty if it is one."""
    if not (isinstance(found, type) and issubclass(found, Format)):
        return f"is {found!r}; a subclass of spinbench.api.Format is needed"
    if missing := sorted(found.__abstractmethods__):
        return f"lacks {' and '.join(missing)}"
    suffixes = getattr(found, "suffixes", ())
    if not (isinstance(suffixes, tuple) and suffixes and all(_is_suffix(each) for each in suffixes)):
        return f"has the suffixes {suffixes!r}; a tuple such as ('.uai',) is needed, in lower case"
    return ""


def _is_suffix(text: object) -> bool:
    return isinstance(text, str) and text.startswith(".") and len(text) > 1 and text == text.lower() and text != ".gz"


@contextmanager
def uncollected() -> Iterator[None]:
    """Inside, it does not run, unless somebody starts it."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()

"""Which format a file is of, by the end of its name and by how it begins; entry points in `spinbench.formats`."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from spinbench.errors import BrokenPluginError, ModelError, SpinbenchError
from spinbench.foundation import plugins
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.files.format import Format, ModelFile, strip_packed_suffix
from spinbench.models.files.packed import PACKERS
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
    file_format: Format = plugins.create("formats", name, _describe_malformation)
    return file_format


def load_errors() -> dict[str, str]:
    """Formats that cannot be used, each with the reason; imports all of them."""
    return _load_all()[1]


def working_formats() -> dict[str, Format]:
    """All others, by name."""
    return _load_all()[0]


def suffixes(*, writable: bool = False) -> list[str]:
    """All that name a format; or those that models can be written to."""
    return sorted(
        {suffix for each in working_formats().values() if each.writes or not writable for suffix in each.suffixes}
    )


def formats_by_name(file_name: str) -> list[Format]:
    """Those of which a file of this name may be."""
    plain = strip_packed_suffix(file_name).lower()
    return [each for each in working_formats().values() if plain.endswith(each.suffixes)]


def detect_format(path: Path) -> Format:
    """The one format that a file is of.

    A file whose name says nothing is recognised by its content, unless its format is told by names alone. Where name
    and content disagree, it is refused. Of several that take a file, it is the one of the longest suffix, spinbench's
    own before others'.

    Raises:
        ModelError: the file cannot be read; no format takes it, or several do, or another than its name says.
        BrokenPluginError: a format that the file is named as raised when it was asked.
    """
    head, named_formats = read_head(path), formats_by_name(path.name)
    if not head:
        raise ModelError(f"{path}: the file is empty")
    recognised, failures = _recognise(named_formats, head)
    if recognised:
        return _unique_match(path, recognised)
    if failures:
        raise BrokenPluginError("; ".join(failures))
    others, failures = _recognise(
        [each for each in working_formats().values() if each not in named_formats and not each.by_name], head
    )
    if not named_formats:
        return _unique_match(path, others, failures)
    if others:
        name_titles, content_titles = _join_titles(named_formats), _join_titles(others)
        raise ModelError(f"{path.name}: the file is named as {name_titles}, but holds {content_titles}; rename it")
    return _unique_match(path, named_formats)


def detect_format_name(path: Path) -> str | None:
    """The name of `detect_format`'s format; None where there is none."""
    with suppress(ModelError, BrokenPluginError):
        file_format = detect_format(path)
        return next(name for name, each in working_formats().items() if each is file_format)
    return None


def format_for_writing(path: Path) -> Format:
    """The format that a file of this name is written in: of the longest suffix, spinbench's own before others'.

    Raises:
        ModelError: there is none, or there are several.
    """
    candidates = _best_matches(path, [each for each in formats_by_name(path.name) if each.writes])
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise ModelError(f"{path}: several formats write this file, {_join_titles(candidates)}; uninstall one")
    *others, last = suffixes(writable=True)
    raise ModelError(f"{path}: models are written to {', '.join(others)} and {last} files")


def describe_suffix_conflicts() -> tuple[str, ...]:
    """A sentence for each format of others with a suffix of spinbench's."""
    builtin_formats = {
        suffix: each for each in working_formats().values() if _is_builtin(each) for suffix in each.suffixes
    }
    return tuple(
        f"{plugins.label('formats', name)} reads {suffix} files where {type(builtin_formats[suffix]).__name__} does "
        "not recognise them, and writes none: they are spinbench's"
        for name, each in working_formats().items()
        for suffix in each.suffixes
        if suffix in builtin_formats and not _is_builtin(each)
    )


def read_model(file_format: Format, file: ModelFile) -> Model:
    """The model of a file.

    Raises:
        ModelError: the file holds none.
        BrokenPluginError: the reader returned something else, or raised what is no SpinbenchError.
    """
    try:
        with pause_garbage_collection():
            model = _call_plugin(file_format, f"read {file.name}", lambda: file_format.read(file))
    except ModelError as error:
        # The error comes from a model's constructor, which does not know the file.
        if file.name in str(error):
            raise
        raise ModelError(f"{file.name}: {error}") from error
    if not isinstance(model, Model):
        raise BrokenPluginError(
            f"{_class_path(file_format)} read {file.name} and returned a {type(model).__name__}; "
            "a PairwiseModel or a FactorGraph is needed"
        )
    return model


def serialise_model(file_format: Format, model: Model) -> bytes:
    """The content of a model's file.

    Raises:
        ModelError: the format cannot hold it.
        BrokenPluginError: the writer returned no bytes, or raised what is no SpinbenchError.
    """
    data = _call_plugin(file_format, f"write {model.name}", lambda: file_format.write(model))
    if not isinstance(data, bytes):
        raise BrokenPluginError(f"{_class_path(file_format)} wrote a {type(data).__name__}; bytes are needed")
    return data


def _call_plugin(file_format: Format, task: str, call: Callable[[], object]) -> object:
    """What a format gives; a sentence of its own is passed on, anything else that it raises is a broken plugin."""
    try:
        return call()
    except SpinbenchError:
        raise
    except (Exception, SystemExit) as error:
        raise BrokenPluginError(
            f"{_class_path(file_format)} failed to {task}: {plugins.describe_error(error)}"
        ) from error


def _recognise(candidates: list[Format], head: bytes) -> tuple[list[Format], list[str]]:
    """Those that recognise a file by how it begins, and of those that raise what they raised."""
    recognised, failures = [], []
    for each in candidates:
        try:
            if each.recognises(head):
                recognised.append(each)
        except (Exception, SystemExit) as error:
            failures.append(f"{_class_path(each)} failed to recognise a file: {plugins.describe_error(error)}")
    return recognised, failures


def _class_path(file_format: Format) -> str:
    return f"{type(file_format).__module__}.{type(file_format).__qualname__}"


def _best_matches(path: Path, candidates: list[Format]) -> list[Format]:
    """Those of the longest suffix that a file's name ends with; of these spinbench's own, if there are such."""
    plain = strip_packed_suffix(path.name).lower()

    def rank(each: Format) -> tuple[int, bool]:
        return max((len(suffix) for suffix in each.suffixes if plain.endswith(suffix)), default=0), _is_builtin(each)

    return [each for each in candidates if rank(each) == max(map(rank, candidates))]


def _is_builtin(each: Format) -> bool:
    return type(each).__module__.startswith("spinbench.")


def _unique_match(path: Path, candidates: list[Format], failures: Sequence[str] = ()) -> Format:
    matches = _best_matches(path, candidates)
    if len(matches) == 1:
        return matches[0]
    if matches:
        advice = "name it by one of them"
        if formats_by_name(path.name):
            advice = "uninstall one"
        raise ModelError(f"{path.name}: several formats take this file, {_join_titles(matches)}; {advice}")
    reasons = "".join(f"; {reason}" for reason in (*load_errors().values(), *failures))
    raise ModelError(
        f"{path}: neither name nor content is that of a known format; files that end in {', '.join(suffixes())} are "
        f"read as models, packed ones (.gz, .bz2, .xz), too{reasons}"
    )


def _join_titles(formats: list[Format]) -> str:
    return " or ".join(f"{type(each).__name__} ({', '.join(each.suffixes)})" for each in formats)


@cache
def _load_all() -> tuple[dict[str, Format], dict[str, str]]:
    return plugins.load_all("formats", load)


def _describe_malformation(plugin: object) -> str:
    """Why what an entry point names is no format; empty if it is one."""
    if not (isinstance(plugin, type) and issubclass(plugin, Format)):
        return f"is {plugin!r}; a subclass of spinbench.api.Format is needed"
    if missing := sorted(plugin.__abstractmethods__):
        return f"lacks {' and '.join(missing)}"
    suffixes = getattr(plugin, "suffixes", ())
    if not (isinstance(suffixes, tuple) and suffixes and all(_is_valid_suffix(each) for each in suffixes)):
        return f"has the suffixes {suffixes!r}; a tuple such as ('.uai',) is needed, in lower case"
    return ""


def _is_valid_suffix(text: object) -> bool:
    return isinstance(text, str) and text[:1] == "." != text and text == text.lower() and text not in PACKERS


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Inside, it does not run, unless somebody starts it."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()

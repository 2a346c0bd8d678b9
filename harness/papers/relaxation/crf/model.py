"""The family of models `skip_chain`: one test message each, with weights trained on the other messages."""

from __future__ import annotations

import contextlib
import hashlib
import io
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spinbench.errors import ModelError
from spinbench.foundation import atomic, folders, parameters
from spinbench.models.pairwise import PairwiseModel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spinbench.papers.relaxation.crf.corpus import Corpus, Message
    from spinbench.papers.relaxation.crf.train import Weights

# Smallest and largest number of tokens of a test message, as in the paper.
TEST_LENGTHS = (50, 628)
# Largest width of a test message's graph along the min-degree order, so that the exact answer is cheap.
MAX_WIDTH = 15
# To be raised whenever the tokens, features, graph or training change.
VERSION = 1


@dataclass(frozen=True, eq=False)
class TrainedSplit:
    """Weights, and the messages that they were not trained on.

    Attributes:
        weights: see there.
        tests: indices of texts of the corpus, in ascending order.
    """

    weights: Weights
    tests: tuple[int, ...]


@parameters.family
def skip_chain(
    message: int = 0,
    corpus: str | None = None,
    split: int = 0,
    tests: int = 10,
    messages: int = 60,
    l2: float = 1.0,
) -> PairwiseModel:
    """Which tokens of a seminar announcement are the speaker's name: p(s) of the skip-chain CRF given the text.

    The first call trains (minutes for 485 messages); weights are kept in spinbench's cache folder.

    Args:
        message: the number of the test message, from 0.
        corpus: folder of tagged announcements, a file each; None: synthetic ones.
        split: seed of the choice of test messages.
        tests: how many test messages there are, all of 50 to 628 tokens and of min-degree width 15 or less.
        messages: how many synthetic announcements are written; for a folder all its files are used.
        l2: strength of the penalty ½ l2 |weights|².

    Raises:
        ModelError: a parameter is out of range, or the folder is not one of tagged announcements.
    """
    from spinbench.papers.relaxation.crf.corpus import parse_announcement, read_corpus

    _check_parameter(
        message >= 0 and tests >= 1, f"message = {message} and tests = {tests}; 0 <= message < tests is needed"
    )
    _check_parameter(message < tests, f"message = {message}; there are {tests} test messages (tests), numbered from 0")
    _check_parameter(split >= 0, f"split = {split}; it must be 0 or more")
    _check_parameter(l2 > 0, f"l2 = {l2}; a positive number is needed")
    _check_parameter(messages > tests, f"messages = {messages} and tests = {tests}; some must be left for training")
    texts = _synthetic_corpus(messages) if corpus is None else read_corpus(Path(corpus))
    trained_split = load_or_train(texts, split, tests, l2)
    kind = "synthetic" if texts.synthetic else "seminar"
    name = f"skip_chain of {kind} announcement {trained_split.tests[message]}"
    return skip_chain_model(parse_announcement(texts.texts[trained_split.tests[message]]), trained_split.weights, name)


def skip_chain_model(message: Message, weights: Weights, name: str = "skip_chain") -> PairwiseModel:
    """A message's model: biases from the features of its tokens, couplings from the kinds of its edges.

    Labels are "3 Smith": the token's number and the token.
    """
    from spinbench.papers.relaxation.crf import corpus, tokens

    features = tokens.extract_features([message])
    values = np.array([weights.features.get(feature, 0.0) for feature in features.names])
    biases = np.bincount(features.rows, values[features.columns], minlength=features.tokens)
    edges, kinds = corpus.build_edges_and_kinds(message)
    labels = [f"{k} {token}" for k, token in enumerate(message.tokens)]
    return PairwiseModel.from_edges(biases, edges, weights.edges[kinds], name=name, labels=labels)


@lru_cache(maxsize=4)
def load_or_train(corpus: Corpus, split: int, tests: int, l2: float) -> TrainedSplit:
    """Weights for a choice of test messages, from memory, from the disk, or trained now.

    Raises:
        ModelError: too few messages fit the limits of a test message, or none of the others has a label.
    """
    from spinbench.papers.relaxation.crf.train import train_weights

    key = hashlib.sha256(f"{VERSION}/{corpus.digest}/{split}/{tests}/{l2!r}".encode()).hexdigest()
    path = folders.cache_folder() / "crf" / f"{key}.npz"
    if (trained_split := _load_weights(path, len(corpus.texts), tests)) is not None:
        return trained_split
    with _training_lock(path):
        if (trained_split := _load_weights(path, len(corpus.texts), tests)) is not None:
            return trained_split
        parsed = corpus.parse()
        chosen = choose_test_messages(parsed, split, tests)
        others = [message for k, message in enumerate(parsed) if k not in set(chosen) and message.tokens]
        if not any(message.labels.any() for message in others):
            raise ModelError(f"the corpus {corpus.source}: no message that is left for training has a tagged speaker")
        trained_split = TrainedSplit(train_weights(others, l2), chosen)
        # A full disk only costs time: the weights are trained again.
        with contextlib.suppress(OSError):
            _save_weights(path, trained_split)
    return trained_split


def choose_test_messages(messages: list[Message], split: int, tests: int) -> tuple[int, ...]:
    """Indices of test messages, drawn by PCG64 with the seed `split` from those that fit `TEST_LENGTHS`, `MAX_WIDTH`.

    Raises:
        ModelError: there are too few.
    """
    from spinbench.papers.relaxation.crf.corpus import build_edges_and_kinds, min_degree_width

    chosen: list[int] = []
    for k in np.random.Generator(np.random.PCG64(split)).permutation(len(messages)).tolist():
        if len(chosen) == tests:
            break
        size = len(messages[k].tokens)
        fits = TEST_LENGTHS[0] <= size <= TEST_LENGTHS[1]
        if fits and min_degree_width(size, build_edges_and_kinds(messages[k])[0], MAX_WIDTH) <= MAX_WIDTH:
            chosen.append(k)
    if len(chosen) < tests:
        raise ModelError(
            f"model 'skip_chain': {tests} test messages were asked for; {len(chosen)} of {len(messages)} messages have "
            f"{TEST_LENGTHS[0]} to {TEST_LENGTHS[1]} tokens and a graph of width {MAX_WIDTH} or less"
        )
    return tuple(sorted(chosen))


@lru_cache(maxsize=4)
def _synthetic_corpus(messages: int) -> Corpus:
    from spinbench.papers.relaxation.crf import synthetic

    return synthetic.write_corpus(messages)


@contextlib.contextmanager
def _training_lock(path: Path) -> Iterator[None]:
    """Processes that need the same weights wait for the first one to train them."""
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        yield


def _save_weights(path: Path, content: TrainedSplit) -> None:
    weights, archive = content.weights, io.BytesIO()
    np.savez(
        archive,
        names=np.frombuffer("\n".join(weights.features).encode(), dtype=np.uint8),
        features=np.array(list(weights.features.values())),
        edges=weights.edges,
        end=np.array([weights.objective, weights.iterations, weights.unconverged, weights.gradient]),
        tests=np.array(content.tests),
    )
    atomic.write_bytes(path, archive.getvalue(), sync=False)


def _load_weights(path: Path, texts: int, tests: int) -> TrainedSplit | None:
    """What `_save_weights` stored; None where there is nothing, or nothing whole."""
    from spinbench.papers.relaxation.crf.train import Weights

    try:
        with np.load(path, allow_pickle=False) as file:
            names = file["names"].tobytes().decode().split("\n")
            features, edges, end, chosen = (file[key] for key in ("features", "edges", "end", "tests"))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    if len(names) != len(features) or edges.shape != (3,) or len(chosen) != tests or chosen.max() >= texts:
        return None
    weights = Weights(
        dict(zip(names, features.tolist(), strict=True)),
        edges,
        float(end[0]),
        int(end[1]),
        int(end[2]),
        float(end[3]),
    )
    return TrainedSplit(weights, tuple(chosen.tolist()))


def _check_parameter(condition: bool, message: str) -> None:
    if not condition:
        raise ModelError(f"model 'skip_chain': {message}")

"""Announcements: tags, encodings, folders, the synthetic ones, and the features of their tokens."""

from __future__ import annotations

import itertools
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from spinbench import cli
from spinbench.errors import ModelError
from spinbench.papers.relaxation.crf import synthetic
from spinbench.papers.relaxation.crf.corpus import (
    build_edges_and_kinds,
    corpus_from_texts,
    decode_text,
    min_degree_width,
    parse_announcement,
    read_corpus,
)
from spinbench.papers.relaxation.crf.tokens import extract_features, header_fields, word_shapes


def speaker_tokens(text: str) -> list[str]:
    message = parse_announcement(text)
    return [token for token, label in zip(message.tokens, message.labels, strict=True) if label]


def test_tags_go_and_the_speaker_stays() -> None:
    message = parse_announcement(
        "Who: <speaker>Dr. Ann Lee</speaker>\nat <stime>3:30</stime> in <location>Hall 5</location>."
    )
    assert message.tokens == ("Who", ":", "Dr", ".", "Ann", "Lee", "at", "3", ":", "30", "in", "Hall", "5", ".")
    assert message.labels.tolist() == [False] * 2 + [True] * 4 + [False] * 8
    assert message.lines.tolist() == [0] * 6 + [1] * 8


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("<paragraph><speaker><sentence>Ann Lee</speaker> talks.</sentence></paragraph>", ["Ann", "Lee"]),
        ("<sentence>Here is <speaker>Ann</sentence> <sentence>Lee</speaker> too.</sentence>", ["Ann", "Lee"]),
        ("<SPEAKER>Ann</Speaker> Lee", ["Ann"]),
        ("<speaker>Ann <speaker>Lee</speaker> Low", ["Ann", "Lee"]),
        ("<speaker>Ann Lee\nwill talk", ["Ann", "Lee"]),
        ("<speaker>Ann\nLee</speaker> talks", ["Ann", "Lee"]),
        ("<speaker>Ann\nLee\n<speaker>Bo</speaker> talks", ["Ann", "Bo"]),
        ("Ann</speaker> Lee", []),
        ("<speaker></speaker>Ann", []),
        ("a <b@c.d> x<y <3 <speakers>Ann</speakers>", []),
        ("", []),
    ],
)
def test_tags_that_overlap_or_do_not_end(text: str, names: list[str]) -> None:
    assert speaker_tokens(text) == names


def test_addresses_in_angle_brackets_are_text() -> None:
    assert parse_announcement("<0.15@x.edu>").tokens == ("<", "0", ".", "15", "@", "x", ".", "edu", ">")
    assert parse_announcement("naïve_Ångström9").tokens == ("naïve", "_", "Ångström9")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Zoë\r\nx\ry".encode(), "Zoë\nx\ny"),
        ("Zoë".encode("latin-1"), "Zoë"),
        ("Zoë".encode("utf-8-sig"), "Zoë"),
        ("Zoë".encode("utf-16"), "Zoë"),
        (b"PK\x03\x04\x00\x00", None),
        (b"", ""),
    ],
)
def test_encodings(content: bytes, text: str | None) -> None:
    assert decode_text(content) == text


def test_folder_is_read_in_order_without_what_is_no_message(tmp_path: Path) -> None:
    texts = {"a/2.txt": b"Zo\xeb <speaker>Lee</speaker>", "a/10.txt": b"second?", "b": b"third"}
    for name, content in {**texts, "empty": b" \n", ".hidden": b"x", ".git/x": b"x", "picture": b"\0\1"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    read = read_corpus(tmp_path)
    assert read.texts == ("second?", "Zoë <speaker>Lee</speaker>", "third")
    assert not read.synthetic
    assert read == corpus_from_texts(list(read.texts), "elsewhere")
    assert read != corpus_from_texts(["second?Zoë <speaker>Lee</speaker>", "third"], str(tmp_path))


def test_folder_without_tags_or_without_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nowhere is no folder"):
        read_corpus(tmp_path / "nowhere")
    (tmp_path / "x").write_text("Who: Ann")
    with pytest.raises(ModelError, match="holds 1 texts and no <speaker> tag"):
        read_corpus(tmp_path)


def test_synthetic_announcements_say_what_they_are_and_have_the_structure() -> None:
    corpus = synthetic.write_corpus(60)
    assert corpus.synthetic
    assert corpus.texts[:20] == synthetic.write_corpus(20).texts
    assert corpus.texts[0] != synthetic.write_announcement(0, seed=1)
    assert all("SYNTHETIC" in text[:120] for text in corpus.texts)
    all_texts = "\n".join(corpus.texts)
    for part in ("Who:  ", "Topic:  ", "Host:  ", "<paragraph>", "<stime>", "<location>", "<speaker><sentence>"):
        assert part in all_texts
    messages = [parse_announcement(text) for text in corpus.texts]
    assert all(message.labels.any() for message in messages if len(message.tokens) > 300)
    repeated = 0
    for message in messages:
        names = [token for token, label in zip(message.tokens, message.labels, strict=True) if label]
        repeated += len(names) - len(set(names))
    assert repeated > 60
    sizes = np.array([len(message.tokens) for message in messages])
    assert ((sizes >= 50) & (sizes <= 628)).mean() > 0.9


def test_a_sweep_refuses_a_wrong_corpus_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["sweep", "-m", "experiment=dhmc_table1", "size=smoke", f"model.corpus={tmp_path / 'missing'}"]
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err.count("is no folder; name one of tagged seminar announcements") == 1
    assert not list(tmp_path.iterdir())


TEXT = "Who: Dr. Ann Lee\nAnn will speak. Lee IBM 42 a"


def names_at(text: str, token: int, *before: str) -> set[str]:
    """Features of a token of the last of several messages."""
    features = extract_features([parse_announcement(part) for part in (*before, text)])
    row = sum(len(parse_announcement(part).tokens) for part in before) + token
    return {features.names[column] for column in features.columns[features.rows == row]}


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("Ann", ["capital", "Xx"]),
        ("IBM", ["capital", "capitals"]),
        ("A", ["capital", "initial"]),
        ("McGill", ["capital"]),
        ("42", ["number"]),
        (".", ["punctuation"]),
        ("talk", []),
    ],
)
def test_shapes(token: str, expected: list[str]) -> None:
    assert word_shapes(token) == expected


@pytest.mark.parametrize("before", [(), ("Other words, before.",)])
def test_features_of_a_token(before: tuple[str, ...]) -> None:
    """ "Ann" in the first line: Who : Dr . [Ann] Lee / Ann will"""
    expected = {
        "-3 word=:", "-3 shape=punctuation", "-2 word=dr", "-2 shape=capital", "-2 shape=Xx", "-2 title", "-1 word=.",
        "-1 shape=punctuation", "0 word=ann", "0 shape=capital", "0 shape=Xx", "+1 word=lee", "+1 shape=capital",
        "+1 shape=Xx", "+2 word=ann", "+2 shape=capital", "+2 shape=Xx", "+3 word=will", "bias", "suffix=ann", "line=0",
        "header=who", "capital in header=who", "Xx before Xx",
    }  # fmt: skip
    assert names_at(TEXT, 4, *before) == expected


def test_headers_need_the_colon_on_their_line() -> None:
    assert header_fields(parse_announcement("Time : 3\nWho\n: x\nnone")) == ["time"] * 3 + [""] * 4


def test_edges_of_a_message() -> None:
    """0 Ann 1 Ann 2 saw / 3 Lee 4 , 5 Ann 6 saw 7 Lee"""
    edges, kinds = build_edges_and_kinds(parse_announcement("Ann Ann saw\nLee, Ann saw Lee"))
    kinds_by_edge = dict(zip(map(tuple, edges.tolist()), kinds.tolist(), strict=True))
    chain = {(k, k + 1): int(k == 2) for k in range(7)}
    assert kinds_by_edge == chain | {(0, 5): 2, (1, 5): 2, (3, 7): 2}
    assert len(edges) == len(kinds_by_edge)
    assert [part.shape for part in build_edges_and_kinds(parse_announcement("one"))] == [(0, 2), (0,)]
    assert [part.shape for part in build_edges_and_kinds(parse_announcement(""))] == [(0, 2), (0,)]


def test_skip_edges_join_all_equal_capitalised_tokens() -> None:
    message = parse_announcement(synthetic.write_announcement(1))
    edges, kinds = build_edges_and_kinds(message)
    same = {
        (i, j)
        for i, j in itertools.combinations(range(len(message.tokens)), 2)
        if message.tokens[i] == message.tokens[j] and message.tokens[i][0].isupper() and j > i + 1
    }
    assert {tuple(edge) for edge in edges[kinds == 2].tolist()} == same
    assert len(same) > 10


def test_min_degree_width() -> None:
    for graph, width in [(nx.path_graph(9), 1), (nx.cycle_graph(9), 2), (nx.complete_graph(7), 6)]:
        edges = np.array(graph.edges, dtype=np.int64)
        assert min_degree_width(len(graph), edges, 15) == width
    assert min_degree_width(7, np.array(nx.complete_graph(7).edges), 5) == 6
    assert min_degree_width(3, np.zeros((0, 2), dtype=np.int64), 5) == 0
    for seed in range(5):
        graph = nx.gnm_random_graph(25, 45, seed=seed)
        width, _ = nx.approximation.treewidth_min_degree(graph)
        assert abs(min_degree_width(25, np.array(graph.edges), 25) - width) <= 1  # ties are broken otherwise

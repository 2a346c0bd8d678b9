"""Features of tokens and the graph of a message, against what a reader finds."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from spinbench.papers.relaxation.crf import synthetic
from spinbench.papers.relaxation.crf.corpus import build_edges_and_kinds, min_degree_width, parse_announcement
from spinbench.papers.relaxation.crf.tokens import extract_features, header_fields, word_shapes

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

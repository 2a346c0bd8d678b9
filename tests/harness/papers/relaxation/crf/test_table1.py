"""Announcements, sum-product and training on them, and the table of the experiment."""

from __future__ import annotations

import io
import itertools
import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from rich.console import Console
from small_records import typed

from spinbench import cli, reference
from spinbench.errors import ModelError
from spinbench.measuring import records
from spinbench.models import PairwiseModel
from spinbench.papers.relaxation.crf import synthetic, table
from spinbench.papers.relaxation.crf.corpus import (
    Message,
    build_edges_and_kinds,
    corpus_from_texts,
    decode_text,
    min_degree_width,
    parse_announcement,
    read_corpus,
)
from spinbench.papers.relaxation.crf.model import choose_test_messages, load_or_train, skip_chain, skip_chain_model
from spinbench.papers.relaxation.crf.tokens import extract_features, header_fields, word_shapes
from spinbench.papers.relaxation.crf.train import MessageGraphs, Objective, train_weights
from spinbench.reporting import variants
from spinbench.sweeping import composition


def record(message: int, rmse: float, log_z: float, *, seed: int = 0, corpus: str | None = None, **method: Any) -> Any:
    return {
        "status": "ok",
        "config": {
            "model": {"name": "skip_chain", "message": message, "corpus": corpus},
            "method": {"name": "gibbs", **method},
            "backend": {"name": "numba"},
            "budget": {"samples": 10},
            "chains": 1,
            "seed": seed,
        },
        "metrics": {
            "marginal_rmse": {"value": rmse},
            "log_z_error": {"value": abs(log_z)},
            "run_seconds": {"value": 2.0},
        },
        "reference": {"log_z": 5.0},
        "result": {"log_z_estimates": {"bridge": [5.0 + log_z, 0.1]}},
    }


def print_report(runs: list[Any]) -> str:
    console = Console(width=140, file=io.StringIO(), record=True)
    for part in table.report(typed(runs), Path()):
        console.print(part)
    return console.export_text()


def test_averages_are_over_messages() -> None:
    """Squares: message 0 has 1 and 9 by two seeds, mean 5; message 1 has 4; message 2 has 9."""
    runs = [record(0, 0.1, 1), record(0, 0.1, -3, seed=1), record(1, 0.2, 2), record(2, 0.3, 3)]
    average = variants.rms_over_models(typed(runs), partial(variants.estimator_log_z_error, "bridge"))
    assert average is not None
    assert average.value == pytest.approx(math.sqrt(6))
    spread = math.sqrt(((5 - 6) ** 2 + (4 - 6) ** 2 + (9 - 6) ** 2) / 2)
    assert average.error == pytest.approx(spread / math.sqrt(3) / (2 * math.sqrt(6)))
    assert (average.median, average.models) == (pytest.approx(2.5), 3)
    assert variants.rms_over_models(typed(runs), partial(variants.estimator_log_z_error, "chib")) is None
    single = variants.rms_over_models(typed(runs[:2]), variants.metric_value("marginal_rmse"))
    assert single is not None
    assert (single.value, single.error) == (pytest.approx(0.1), None)


def test_variants_are_named_by_what_differs() -> None:
    runs = [record(k, 0.1, 1, sample=sample) for sample in ("update", "sweep") for k in (0, 1)]
    assert {label: len(group) for label, group in variants.group_by_variant(typed(runs)).items()} == {
        "gibbs sample=update": 2,
        "gibbs sample=sweep": 2,
    }
    assert list(variants.group_by_variant(typed(runs[:2]))) == ["gibbs"]


def test_table_says_where_the_announcements_are_from() -> None:
    output = print_report([record(k, 0.1 * (k + 1), k + 1) for k in range(3)])
    assert "Table 1: skip-chain CRF on SYNTHETIC announcements" in output
    (line,) = [line for line in output.splitlines() if line.strip().startswith("gibbs")]
    assert " ".join(line.split()) == "gibbs 3 0.216 ± 0.054 2.16 ± 0.54 2.00 – 2.16 ± 0.54 2.00"
    assert "announcements in my/folder" in print_report([record(0, 0.1, 1, corpus="my/folder")])
    failed = {**record(0, 0.1, 1), "status": "failed"}
    assert "no table" in print_report([failed])


def test_experiment_in_full_is_that_of_the_paper() -> None:
    plan = composition.plan(["experiment=dhmc_table1"], multirun=False)
    assert plan.cells == 5 * 75
    config = plan.config
    assert (config.model.messages, config.model.tests) == (485, 75)
    assert (config.budget.samples, config.chains, config.backend.name) == (10000, 1, "numba")
    assert composition.plan(["experiment=dhmc_table1", "size=smoke", "seed=0,1"], multirun=False).cells == 20


@pytest.mark.slow
def test_smoke_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sweep", "experiment=dhmc_table1", "size=smoke", "sweep_dir=out"]) == 0
    output = capsys.readouterr().out
    assert "10 cells into out" in output
    stored = records.read_records(Path("out"))
    assert len(stored) == 10
    assert all(entry["axes"]["model"].endswith("corpus=synthetic)") for entry in stored)
    assert all(entry["reference"]["method"] != "auto" for entry in stored)
    errors = {
        label: variants.rms_over_models(typed(group), variants.metric_value("marginal_rmse"))
        for label, group in variants.group_by_variant(typed(stored)).items()
    }
    assert set(errors) == {
        "gibbs sample=update",
        "gibbs sample=sweep",
        "dhmc",
        "block_gibbs diagonal=minshift slack=0.1",
        "block_gibbs diagonal=sdp slack=0.02",
    }
    values = {label: average.value for label, average in errors.items() if average is not None}
    assert len(values) == 5
    update = values.pop("gibbs sample=update")
    assert values["gibbs sample=sweep"] < update / 3  # a sweep is about 200 updates: an error about 14 times smaller
    assert max(values.values()) < 0.3
    for label in errors:
        assert label in output
    assert "SYNTHETIC" in output
    assert json.loads(Path("out/sweep.json").read_text())["report"] == "table1"
    assert cli.main(["report", "out"]) == 0
    again = capsys.readouterr().out
    assert (
        again.strip().splitlines()[0].rstrip()
        == "Table 1: skip-chain CRF on SYNTHETIC announcements (written by spinbench)"
    )
    assert all(label in again for label in errors)


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


WORDS = ("alpha", "beta", "gamma", "Delta", "Rho", "Tau", ".")


def messages(count: int) -> list[Message]:
    return [parse_announcement(text) for text in synthetic.write_corpus(count).texts]


def model_of(message: Message, biases: np.ndarray, weights: np.ndarray) -> PairwiseModel:
    edges, kinds = build_edges_and_kinds(message)
    return PairwiseModel.from_edges(biases, edges, weights[kinds])


def run(parts: list[Message], biases: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, int]:
    graph = MessageGraphs.from_messages(parts)
    return graph.sum_product(biases, weights, np.zeros(2 * len(graph.edges)))


def test_sum_product_is_exact_on_chains_side_by_side() -> None:
    rng = np.random.default_rng(0)
    parts = [
        parse_announcement("one of a\nkind, not two"),
        parse_announcement("word"),
        parse_announcement("some more\nwords"),
    ]
    weights = np.array([2.0, -3.0, 0.0])
    biases = rng.normal(size=sum(len(part.tokens) for part in parts))
    log_z, nodes, pairs, left = run(parts, biases, weights)
    low, exact_log_z, exact_nodes = 0, 0.0, []
    for part in parts:
        model = model_of(part, biases[low : low + len(part.tokens)], weights)
        answer = reference.solve(model, cache=False)
        exact_log_z += answer.log_z
        exact_nodes += [vector[1] for vector in answer.marginals]
        low += len(part.tokens)
    assert left == 0
    assert log_z == pytest.approx(exact_log_z, abs=1e-10)
    np.testing.assert_allclose(nodes, exact_nodes, atol=1e-10)
    # d log Z / dW is the belief of the pair
    step = 1e-5
    up, down = (run(parts, biases, weights + np.array([0.0, sign * step, 0.0]))[0] for sign in (1, -1))
    assert pairs[MessageGraphs.from_messages(parts).kinds == 1].sum() == pytest.approx(
        (up - down) / (2 * step), abs=1e-8
    )


def test_gradient_against_differences() -> None:
    objective = Objective(messages(4), l2=0.7)
    rng = np.random.default_rng(2)
    theta = np.concatenate([0.3 * rng.normal(size=objective.size - 3), [1.5, -0.5, 0.6]])
    value, gradient = objective(theta)
    assert objective.unconverged == 0
    chosen = [*rng.choice(objective.size - 3, 25, replace=False).tolist(), *range(objective.size - 3, objective.size)]
    step = 1e-4
    for k in chosen:
        unit = np.zeros(objective.size)
        unit[k] = step
        difference = (objective(theta + unit)[0] - objective(theta - unit)[0]) / (2 * step)
        assert gradient[k] == pytest.approx(difference, abs=1e-5 + 1e-6 * abs(difference))
    objective.set_starting_point(theta)
    again = objective(theta)
    assert again[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(again[1], gradient, atol=1e-6)


def sample_messages(count: int) -> tuple[list[Message], np.ndarray]:
    """Messages of random words, labelled by exact draws from a model with known weights."""
    rng = np.random.default_rng(3)
    word_weights = dict(zip(WORDS, (-1.0, 0.5, 1.5, -0.5, 1.0, -1.5, 0.0), strict=True))
    edges = np.array([1.0, -0.8, 0.7])
    messages = []
    for _ in range(count):
        text = "\n".join(" ".join(rng.choice(WORDS, 5)) for _ in range(3))
        blank = parse_announcement(text)
        biases = np.array([word_weights[token] for token in blank.tokens]) - 0.5
        labels = reference.sample(model_of(blank, biases, edges), 1, rng)[0].astype(bool)
        messages.append(Message(blank.tokens, blank.lines, labels))
    return messages, edges


def test_training_recovers_planted_weights() -> None:
    """400 messages of 15 tokens; a coupling's standard error is about 1 / sqrt(E p(1-p)), 0.06 and less."""
    parts, edges = sample_messages(400)
    weights = train_weights(parts, l2=0.05)
    assert weights.unconverged == 0
    assert weights.gradient < 0.05
    np.testing.assert_allclose(weights.edges, edges, atol=0.3)
    means = {}
    for token in WORDS:  # the window's other features have no weight, but for noise
        model = skip_chain_model(parse_announcement(" ".join(["beta", token, "beta"])), weights)
        means[token] = model.biases[1]
    order = sorted(WORDS, key=means.__getitem__)
    assert order[0] == "Tau"
    assert order[-1] == "gamma"
    assert means["gamma"] - means["Tau"] == pytest.approx(3.0, abs=0.8)


class TestFamily:
    def test_a_folder_gives_what_its_texts_give(self, tmp_path: Path) -> None:
        for k, text in enumerate(synthetic.write_corpus(14).texts):
            (tmp_path / f"{k:03}.txt").write_text(text)
        mine = skip_chain(1, str(tmp_path), tests=2)
        synthetic_model = skip_chain(1, tests=2, messages=14)
        assert mine.content_hash == synthetic_model.content_hash
        assert "synthetic" in synthetic_model.name
        assert "synthetic" not in mine.name
        assert skip_chain(0, tests=2, messages=14).content_hash != mine.content_hash
        load_or_train.cache_clear()
        assert skip_chain(1, tests=2, messages=14).content_hash == mine.content_hash  # from the disk

    def test_test_messages_fit_the_limits_and_are_a_split(self) -> None:
        parsed = [*messages(40), parse_announcement("short")]
        chosen = choose_test_messages(parsed, 0, 12)
        assert len(set(chosen)) == 12
        assert all(50 <= len(parsed[k].tokens) <= 628 for k in chosen)
        assert chosen == choose_test_messages(parsed, 0, 12) != choose_test_messages(parsed, 1, 12)
        with pytest.raises(ModelError, match="3 test messages were asked for; 0 of 1 messages have"):
            choose_test_messages([parse_announcement("short")], 0, 3)

    @pytest.mark.parametrize(
        ("parameters", "sentence"),
        [
            ({"message": 10}, "message = 10; there are 10 test messages"),
            ({"message": -1}, "message = -1"),
            ({"split": -1}, "split = -1"),
            ({"l2": 0.0}, "l2 = 0.0; a positive number"),
            ({"messages": 10}, "messages = 10 and tests = 10"),
            ({"corpus": "nowhere"}, "the corpus nowhere is no folder"),
        ],
    )
    def test_wrong_parameters(self, parameters: dict[str, object], sentence: str) -> None:
        with pytest.raises(ModelError, match=sentence):
            skip_chain(**parameters)  # type: ignore[arg-type]

    def test_training_needs_a_tagged_speaker(self, tmp_path: Path) -> None:
        (tmp_path / "0").write_text("<speaker>Ann</speaker> " + "word " * 60)
        (tmp_path / "1").write_text("nothing")
        with pytest.raises(ModelError, match="no message that is left for training has a tagged speaker"):
            skip_chain(0, str(tmp_path), tests=1)

"""Sum-product, the objective's gradient, and what training finds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spinbench import reference
from spinbench.errors import ModelError
from spinbench.models import PairwiseModel
from spinbench.papers.relaxation.crf import synthetic
from spinbench.papers.relaxation.crf.corpus import Message, build_edges_and_kinds, parse_announcement
from spinbench.papers.relaxation.crf.model import choose_test_messages, load_or_train, skip_chain, skip_chain_model
from spinbench.papers.relaxation.crf.train import MessageGraphs, Objective, train_weights

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

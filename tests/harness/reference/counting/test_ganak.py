"""Weighted model counting against elimination; what a child process that does not end costs; and plugins' solvers."""

from __future__ import annotations

import itertools
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest

from spinbench import reference
from spinbench.errors import BrokenPluginError, IntractableError, ModelError, UnsupportedError
from spinbench.foundation import deadline, plugins
from spinbench.models import FactorGraph, generators
from spinbench.reference.answer import left_open
from spinbench.reference.counting import ganak
from spinbench.reference.counting.choices import median_choices
from spinbench.reference.counting.encoding import encode
from spinbench.reference.problem import Problem
from spinbench.reference.progress import PROGRESS, Progress

needs_ganak = pytest.mark.skipif(not plugins.is_there("pyganak"), reason="pyganak is not installed: no wheel fits")
forks = pytest.mark.skipif(sys.platform != "linux", reason="children are no forks, and have nothing that is set here")


def clauses(variables: int, count: int, seed: int, width: int = 3) -> FactorGraph:
    """A random formula: a table of one zero for each clause."""
    rng, tables = np.random.default_rng(seed), []
    for _ in range(count):
        table = np.zeros([2] * width)
        table[tuple(rng.integers(0, 2, width))] = -np.inf
        tables.append((rng.choice(variables, width, replace=False).tolist(), table))
    return FactorGraph.from_log_tables([2] * variables, tables, name="clauses")


def with_zeros(seed: int) -> FactorGraph:
    """Of 2 to 4 states, factors of up to 8 variables, and weights from 1 to e^-2000 or of all of a double's range."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 5 if seed % 2 else 3, rng.integers(2, 9)).tolist()
    tables = []
    for _ in range(rng.integers(2, 8)):
        scope = rng.permutation(len(cards))[: rng.integers(1, 9 if seed % 2 == 0 else 4)].tolist()
        shape = [cards[v] for v in scope]
        if seed % 3:
            table = rng.choice([0.0, -0.3, -2.0, -2000.0, -np.inf, -np.inf], shape)
        else:
            table = np.where(rng.random(shape) < 0.4, -np.inf, rng.uniform(-690, 690, shape).round(-1))
        table[tuple(rng.integers(0, k) for k in shape)] = 1.0
        tables.append((scope, table))
    return FactorGraph.from_log_tables(cards, tables, log_constant=-2.5, name=f"zeros{seed}")


@needs_ganak
def test_answers_are_those_of_elimination() -> None:
    impossible = 0
    for model in (*map(with_zeros, range(9)), *(clauses(8, 36, seed) for seed in range(3))):
        try:
            exact = reference.solve(model, method="bucket_tree", cache=False)
        except ModelError:
            impossible += 1
            with pytest.raises(ModelError, match="Z = 0"):
                reference.solve(model, method="ganak", cache=False)
            continue
        counted = reference.solve(model, method="ganak", cache=False)
        assert counted.log_z == pytest.approx(exact.log_z, rel=1e-12, abs=1e-11)
        np.testing.assert_allclose(counted.flat, exact.flat, atol=1e-10)
    assert 1 <= impossible < 8


@needs_ganak
@pytest.mark.parametrize("log_weight", [0.0, 5.0, -5.0])
def test_counts_beyond_the_range_of_doubles(log_weight: float) -> None:
    """2^3000 states; and e^±15000 with them."""
    equal = np.where(np.eye(2, dtype=bool), log_weight, -np.inf)
    pairs = [((2 * v, 2 * v + 1), equal) for v in range(3000)]
    model = FactorGraph.from_log_tables([2] * 6000, pairs)
    answer = reference.solve(model, method="ganak", marginals=False, cache=False)
    assert answer.log_z == pytest.approx(3000 * (math.log(2) + log_weight), rel=1e-13)


def pigeons(holes: int) -> FactorGraph:
    """One pigeon more than holes: no state, which takes long to see."""
    unlike = np.where(np.eye(holes, dtype=bool), -np.inf, 0.0)
    pairs = list(itertools.combinations(range(holes + 1), 2))
    return FactorGraph.from_log_tables([holes] * (holes + 1), [(pair, unlike) for pair in pairs], name="pigeons")


@needs_ganak
def test_what_is_too_wide_is_counted() -> None:
    """At most one of all variables is 1: the graph is complete, and Z = 1 + the sum of the variables' weights."""
    n = 60
    both = np.array([[0.0, 0.0], [0.0, -np.inf]])
    fields = [((v,), [0.0, 0.01 * v]) for v in range(n)]  # or the variables were exchangeable
    pairs = [(pair, both) for pair in itertools.combinations(range(n), 2)]
    model = FactorGraph.from_log_tables([2] * n, [*fields, *pairs])
    answer = reference.solve(model, cache=False)
    weights = np.exp(0.01 * np.arange(n))
    assert (answer.method, answer.log_z) == ("ganak", pytest.approx(math.log1p(weights.sum()), rel=1e-13))
    np.testing.assert_allclose(answer.probabilities, weights / (1 + weights.sum()), rtol=1e-10)
    assert reference.solve(model, cache=False, marginals=False).log_z == pytest.approx(answer.log_z, rel=1e-13)


@forks
@needs_ganak
def test_marginals_that_take_too_long_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    model = clauses(20, 30, 0)
    whole = reference.solve(model, method="ganak", cache=False)
    assert np.isfinite(whole.flat).all()
    monkeypatch.setattr(ganak, "MARGINALS_OF_LOG_Z", 0.0)
    monkeypatch.setattr(ganak, "TRIAL", 0.0)
    monkeypatch.setattr(ganak, "_count", lambda *given: time.sleep(1.0) or 1.0)
    monkeypatch.setattr(ganak, "compute_log_count", lambda formula, seed: whole.log_z - formula.log_scale)
    begin = time.perf_counter()
    answer = reference.solve(model, method="ganak", cache=False, seconds=60.0)
    assert (answer.log_z, np.isnan(answer.flat).all()) == (whole.log_z, True)
    assert left_open(answer.flat, answer.cardinalities) == {"open_marginals": 20.0}
    impossible_first = np.array([0.0, np.nan, np.nan, 0.5, 0.5])
    assert left_open(impossible_first, (3, 2)) == {"open_marginals": 1.0}
    assert time.perf_counter() - begin < 15


@needs_ganak
def test_no_seconds_are_predicted_of_a_count() -> None:
    heard: list[Progress] = []
    token = PROGRESS.set(heard.append)
    answer = reference.solve(clauses(20, 30, 0), method="ganak", cache=False)
    PROGRESS.reset(token)
    assert "predict" not in heard[-1].describe(0.1)
    assert heard[-1].describe(0.1).endswith("counting for 540 s at most")
    assert "predicted_seconds" not in answer.diagnostics
    assert "memory_gib" in answer.diagnostics


@forks
@needs_ganak
def test_a_count_ends_with_its_time_and_the_refusal_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A count that has all of the budget ends at nine tenths of it, so that the refusal comes in time."""
    monkeypatch.setattr(ganak, "work", _wait)
    begin = time.perf_counter()
    with pytest.raises(IntractableError, match=r"ganak had not finished counting after 0\.9 s"):
        reference.solve(pigeons(5), method="ganak", cache=False, seconds=1.0)
    with deadline.within(0.2), pytest.raises(IntractableError, match=r"after 0\.\d+ s"):
        reference.solve(pigeons(5), method="ganak", cache=False, seconds=1.0)
    assert time.perf_counter() - begin < 5


@needs_ganak
def test_no_count_goes_on_after_its_time() -> None:
    with pytest.raises(IntractableError, match="ganak had not finished"):
        reference.solve(clauses(110, 200, seed=0), method="ganak", cache=False, seconds=0.5)
    for child in multiprocessing.active_children():
        child.join(20)
        assert not child.is_alive()


def independent_sets(vertices: int) -> FactorGraph:
    """Of a random graph of degree 3: zeros that rule out few states of its widest part."""
    both = np.array([[0.0, 0.0], [0.0, -np.inf]])
    edges = generators.random_regular(vertices, 3, seed=1).edges.tolist()
    tables = [*((edge, both) for edge in edges), *(((v,), [0.0, 0.01 * v]) for v in range(vertices))]
    return FactorGraph.from_log_tables([2] * vertices, tables, name="sets")


@forks
@needs_ganak
def test_hopeless_counts_end_soon_unless_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ganak, "work", _wait)
    monkeypatch.setattr(ganak, "HOPELESS_SECONDS", 0.2)
    model = independent_sets(300)
    with pytest.raises(
        IntractableError, match=r"width.*, .*after 0\.2 s, and more would not help: its zeros leave 2\^[34]\d states"
    ):
        reference.solve(model, cache=False)
    with pytest.raises(IntractableError, match=r"counting after 0\.[89]\d* s$"):
        reference.solve(model, method="ganak", cache=False, seconds=1.0)


def test_what_follows_from_clauses_is_no_choice() -> None:
    equal = np.where(np.eye(3, dtype=bool), 0.0, -np.inf)
    chain = FactorGraph.from_log_tables([3] * 5, [((v, v + 1), equal) for v in range(4)])
    assert median_choices(encode(Problem(chain).network), range(5)) == pytest.approx(math.log2(3))
    sets = independent_sets(40)
    assert 10 < median_choices(encode(Problem(sets).network), range(40)) < 40
    assert median_choices(encode(Problem(pigeons(2)).network), range(3)) <= 1


def test_contradictions_do_not_make_a_count_look_short() -> None:
    """Random states of a formula contradict it soon, in one trial at 2^11 and in the median one at 2^32."""
    assert median_choices(encode(Problem(clauses(100, 200, seed=0)).network), range(100)) > 25


@forks
@needs_ganak
def test_a_width_that_is_out_of_reach_by_numbers_of_states_alone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 2^120 states of the widest part, though it has fewer than 150 variables, the order has no buckets."""
    monkeypatch.setattr(ganak, "HOPELESS_SECONDS", 0.2)
    unequal = np.where(np.eye(4, dtype=bool), -np.inf, 0.0)
    edges = generators.random_regular(300, 4, seed=1).edges.tolist()
    with pytest.raises(IntractableError, match="more would not help"):
        reference.solve(FactorGraph.from_log_tables([4] * 300, [(edge, unequal) for edge in edges]), cache=False)


def _wait(task: object) -> Iterator[float]:
    yield from iter([])
    time.sleep(1000)


@forks
@needs_ganak
def test_a_counter_that_dies_takes_nobody_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ganak, "work", lambda task: os._exit(3))
    with pytest.raises(IntractableError, match="ganak ended early"):
        reference.solve(pigeons(4), method="ganak", cache=False)


def test_without_the_package_the_refusal_says_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "is_there", lambda module: False)
    with pytest.raises(UnsupportedError, match="needs the package pyganak: pip install pyganak"):
        reference.solve(clauses(10, 20, 0), method="ganak", cache=False)
    with pytest.raises(IntractableError, match=r"\(budget\); .*; the exact method 'ganak' needs the package"):
        reference.solve(clauses(60, 240, 1), cache=False, max_bytes=2**12)


@needs_ganak
def test_a_package_that_does_not_load_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyganak", None)
    monkeypatch.setattr(plugins, "is_there", lambda module: True)
    with pytest.raises(IntractableError, match="pyganak is installed and does not load"):
        reference.solve(clauses(10, 20, 0), method="ganak", cache=False)


def test_cheap_elimination_and_models_without_zeros_are_not_counted() -> None:
    assert reference.solve(clauses(30, 40, 0), cache=False).method == "bucket_tree"
    table = np.random.default_rng(0).normal(size=(3, 3))
    assert ganak.Ganak.passed_by(Problem(FactorGraph.from_log_tables([3, 3], [((0, 1), table)])))
    assert ganak.Ganak.passed_by(Problem(FactorGraph.from_log_tables([3, 3], [])))


SOLVER = """
from spinbench.reference.solver import Solver

class Fixed(Solver):
    name, can_sample, width, seconds = "fixed", False, None, 1e-9

    @classmethod
    def build(cls, problem):
        return cls()

    def memory(self, *, marginals):
        return 0

    def solve(self, *, marginals):
        return 42.0, None
"""


def test_solvers_of_plugins_are_known_and_taken(install_plugin) -> None:
    install_plugin("my_solver", SOLVER, {"solvers": {"fixed": "Fixed"}})
    assert "fixed" in reference.METHODS
    model = clauses(60, 240, 1)
    for method in ("fixed", "auto"):
        answer = reference.solve(model, method=method, marginals=False, cache=False)
        assert (answer.method, answer.log_z) == ("fixed", 42.0)


def test_a_broken_plugin_costs_a_sentence(install_plugin, capsys) -> None:
    install_plugin("broken_solver", "raise OSError('no licence')", {"solvers": {"licensed": "X"}})
    model = clauses(30, 40, 0)
    assert math.isfinite(reference.solve(model, cache=False).log_z)
    with pytest.raises(IntractableError, match=r"is allowed \(max_gib\)"):
        reference.solve(clauses(60, 240, 1), cache=False, max_bytes=2**12)
    assert capsys.readouterr().err.count("no licence") == 1
    with pytest.raises(BrokenPluginError, match=r"'licensed' .* failed on import: OSError: no licence"):
        reference.solve(model, method="licensed", cache=False)

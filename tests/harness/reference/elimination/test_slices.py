"""Elimination a slice at a time: the whole answer, whatever is held; and what is said beforehand."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench import reference
from spinbench.backends.numba.exact.tree import CompiledTree
from spinbench.errors import IntractableError, ModelError, SpinbenchError
from spinbench.foundation.interruptions import interruptible
from spinbench.models import FactorGraph, generators
from spinbench.reference import memory
from spinbench.reference.elimination.bucket_tree import BucketTree
from spinbench.reference.elimination.matrix_tree import MatrixTree
from spinbench.reference.elimination.slices import SlicedElimination
from spinbench.reference.orders import order as orders
from spinbench.reference.orders.order import order_cost
from spinbench.reference.problem import Problem
from spinbench.reference.progress import PROGRESS, Progress
from spinbench.reference.solver import ZeroWeightError


def random_model(rng: np.random.Generator, scale: float) -> FactorGraph:
    """Four to eight variables of 1 to 4 states, factors of orders 1 to 4, hard zeros; sometimes Z = 0."""
    cards = rng.integers(1, 5, size=rng.integers(4, 9)).tolist()
    factors = []
    for _ in range(len(cards) + 3):
        scope = rng.permutation(len(cards))[: rng.integers(1, 5)].tolist()
        table = rng.normal(0, scale, [cards[v] for v in scope])
        table[rng.random(table.shape) < 0.25] = -np.inf
        factors.append((scope, table))
    return FactorGraph.from_log_tables(cards, factors)


@pytest.mark.parametrize(
    ("kind", "scale"), [(MatrixTree, 1.0), *((kind, 400.0) for kind in (BucketTree, MatrixTree, CompiledTree))]
)
def test_slices_add_up(kind: type, scale: float) -> None:
    """Against enumeration, for sets of variables at random; strong factors leave the range of float64."""
    rng, impossible = np.random.default_rng(3), 0
    for _ in range(15):
        try:
            model = random_model(rng, scale)
            whole = reference.solve(model, method="enumeration", cache=False)
            problem = Problem(model)
        except ModelError:
            impossible += 1
            continue
        n = len(problem.cardinalities)
        held = rng.permutation(n)[: rng.integers(1, n + 1)].tolist() if n else []
        if not held:
            continue
        sliced = SlicedElimination(kind(problem, problem.order), held, workers=int(rng.integers(1, 4)))
        log_z, flat = sliced.solve(marginals=True)
        assert log_z == pytest.approx(whole.log_z, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(problem.decode_marginals(flat), whole.flat, rtol=0, atol=1e-11)
        assert sliced.solve(marginals=False)[0] == pytest.approx(log_z, rel=1e-14)
    assert impossible < 10


def test_no_slice_has_weight() -> None:
    no = [[-np.inf, 0.0], [0.0, -np.inf]]
    model = FactorGraph.from_log_tables([2, 2, 2], [(e, no) for e in ((0, 1), (1, 2), (0, 2))])
    with pytest.raises(ZeroWeightError):
        SlicedElimination(BucketTree.build(Problem(model)), [0], 2).solve(marginals=True)


def test_progress_begins_with_what_is_predicted_and_counts_to_the_end() -> None:
    seen: list[Progress] = []
    token = PROGRESS.set(seen.append)
    model = generators.grid(4, 14, seed=1)
    try:
        answer = reference.solve(model, method="bucket_tree", marginals=False, cache=False, max_bytes=700)
    finally:
        PROGRESS.reset(token)
    assert answer.cost is not None
    assert answer.cost.slices > 1
    assert [each[:2] for each in seen] == [(k, answer.cost.slices) for k in range(answer.cost.slices + 1)]
    assert {each.bytes for each in seen} == {answer.cost.bytes}
    assert 0 < seen[0].seconds_left <= answer.cost.seconds
    assert seen[-1].seconds_left == 0.0


def test_many_small_slices_are_predicted_to_wait_for_each_other_and_refused() -> None:
    model = generators.grid(4, 14, seed=1)
    with pytest.raises(IntractableError, match="would take"):
        reference.solve(model, method="bucket_tree", cache=False, max_bytes=3000, seconds=10.0)


def test_memory_is_kept_by_more_slices_and_time_refuses() -> None:
    model = generators.random_regular(60, 3, seed=2)
    whole = spinbench.exact(model, cache=False)
    gib = whole.diagnostics["memory_gib"]
    sliced = spinbench.exact(model, max_gib=gib / 8, cache=False)
    assert sliced.diagnostics["slices"] > 1
    assert sliced.diagnostics["memory_gib"] <= gib / 8
    assert sliced.log_z == pytest.approx(whole.log_z, rel=1e-13)
    np.testing.assert_allclose(sliced.marginals, whole.marginals, rtol=0, atol=1e-12)
    with pytest.raises(IntractableError, match=r"meets width \d+ and would take .* of memory and .* s, and .*budget"):
        spinbench.exact(model, max_gib=gib / 8, budget="1 ms", cache=False)


def test_memory_for_single_states_alone_holds_all_variables() -> None:
    tables = np.random.default_rng(5).normal(size=(2, 4, 4))
    model = FactorGraph.from_log_tables([4, 4, 4], [((0, 1), tables[0]), ((1, 2), tables[1])])
    answer = reference.solve(model, method="bucket_tree", max_bytes=1, cache=False, marginals=False)
    assert answer.log_z == pytest.approx(reference.solve(model, method="enumeration", cache=False).log_z, rel=1e-12)


def test_slices_that_would_be_too_many_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Along a lattice, 2^26 slices of 24 rows take a tenth of the memory of the whole."""
    monkeypatch.setattr(orders, "SEARCH_SECONDS", 0.1)
    with pytest.raises(
        IntractableError, match=r"\(budget\);( the package goatd [^;]*;)? more than 16384 slices would be needed"
    ):
        spinbench.exact(generators.grid(24, 24), max_gib=0.05, cache=False)


def test_too_wide_for_all_is_refused_soon() -> None:
    model, since = generators.random_regular(600, 3, seed=0), time.process_time()
    with pytest.raises(
        IntractableError, match=r"meets width \d\d\d? and would take .*iB of memory and more than 30 years"
    ):
        spinbench.exact(model, cache=False)
    assert time.process_time() - since < 30  # 3 s alone on the machine; not a measurement


def test_an_order_can_be_given_and_repeats() -> None:
    model = generators.random_regular(40, 3, seed=1)
    found = spinbench.exact(model, cache=False)
    again = spinbench.exact(model, order=found.order, cache=False)
    assert (again.log_z, again.settings, again.order) == (found.log_z, found.settings, found.order)
    other = spinbench.exact(model, order=range(40), cache=False)
    assert other.order == tuple(range(40))
    assert other.log_z == pytest.approx(found.log_z, rel=1e-13)
    assert other.settings["order"] != found.settings["order"]
    assert spinbench.exact(model, order=iter(range(40)), cache=False).order == tuple(range(40))
    wrong: list[Any] = [[0, 1], ["a", *range(1, 40)], [*range(39), None], np.arange(40)[:, None], "0,1", 3]
    for order in wrong:
        with pytest.raises(ModelError, match="must name each of its 40 variables once"):
            spinbench.exact(model, order=order)


def test_the_order_of_an_answer_has_what_fell_away_first() -> None:
    """The last variable has one possible state, so that elimination does not meet it."""
    rng = np.random.default_rng(0)
    scopes = [(i, (i + 1) % 20) for i in range(20)] + [(i, (i + 3) % 20, (i + 7) % 20) for i in range(20)]
    factors = [(scope, rng.uniform(0.5, 2.0, size=(2,) * len(scope))) for scope in scopes]
    model = FactorGraph.from_tables((2,) * 21, [*factors, ((0, 20), np.array([[1.0, 0.0], [2.0, 0.0]]))])
    found = spinbench.exact(model, cache=False)
    assert found.order is not None
    assert found.order[0] == 20
    again = spinbench.exact(model, order=found.order, cache=False)
    assert (again.log_z, again.order) == (found.log_z, found.order)


def test_an_order_of_a_model_with_variables_that_fall_away() -> None:
    """One of one state, one that a hard zero decides, and two that sum out."""
    rng = np.random.default_rng(0)
    share = rng.dirichlet([1, 1], size=2)
    model = FactorGraph.from_tables(
        [2, 1, 2, 2, 3, 2],
        [
            ((0, 2), rng.random((2, 2))),
            ((1, 0), rng.random((1, 2))),
            ((3,), [0.0, 1.0]),
            ((0, 3, 4), rng.random((2, 2, 3))),
            ((2, 5), share),
        ],
    )
    plain = reference.solve(model, method="enumeration", cache=False)
    given = spinbench.exact(model, order=[5, 4, 3, 2, 1, 0], cache=False)
    assert given.log_z == pytest.approx(plain.log_z, rel=1e-13)
    for got, want in zip(given.marginals, plain.marginals, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-13)


def test_budgets_are_times() -> None:
    model = generators.grid(3, 3)
    assert math.isfinite(spinbench.exact(model, budget="2 s", cache=False).log_z or math.nan)
    with pytest.raises(SpinbenchError, match="takes a budget in seconds of wall-clock, and 100 samples was given"):
        spinbench.exact(model, budget="100", cache=False)


def test_memory_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(memory.VARIABLE, raising=False)
    assert 2**20 <= memory.default_max_bytes() <= memory.available_bytes()
    monkeypatch.setenv(memory.VARIABLE, "0.25")
    assert memory.default_max_bytes() == 2**28
    for wrong in ("much", "", "nan", "-1", "0"):
        monkeypatch.setenv(memory.VARIABLE, wrong)
        with pytest.raises(SpinbenchError, match=r"SPINBENCH_MAX_GIB=.* is set; a positive number of GiB is needed"):
            memory.default_max_bytes()
    monkeypatch.setattr(memory, "_left_by_containers", lambda: [2**24, 2**30])
    assert memory._available_bytes(-1) == 2**24  # of no second, so that nobody else finds it kept


@pytest.mark.parametrize("version", [1, 2])
def test_limits_of_containers_count(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a group around this process's, whose name has a blank; what files hold is given back when needed."""
    controllers, limit, used, cached = {
        1: ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        2: ("", "memory.max", "memory.current", "inactive_file"),
    }[version]
    outer = tmp_path / controllers / "a pod"
    (outer / "inner").mkdir(parents=True)
    (outer / limit).write_text(f"{2**30}\n")
    (outer / used).write_text(f"{2**29}\n")
    (outer / "memory.stat").write_text(f"anon 5\n{cached} {2**20}\n")
    (outer / "inner" / limit).write_text("max\n")
    (outer / "inner" / used).write_text("17\n")
    groups = tmp_path / "groups"
    groups.write_text(f"1:cpu:/other\n4:{controllers}:/a pod/inner\n")
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    monkeypatch.setattr(memory, "OWN_GROUPS", groups)
    assert memory._left_by_containers() == [2**29 + 2**20]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("held", [0, 6], ids=["whole", "slices"])
def test_an_interrupt_ends_elimination_soon(held: int) -> None:
    """Of some 10 s: the caller has its lock back at once, and no thread goes on."""
    rows, columns = 22, 22
    sites = [r * columns + c for r in range(rows) for c in range(columns)]
    problem = Problem(generators.grid(rows, columns))
    problem.order = order_cost(sites, problem.cardinalities, problem.pairs)
    tree = CompiledTree.build(problem)
    solver = SlicedElimination(tree, sites[:held], 2) if held else tree
    SlicedElimination(CompiledTree.build(Problem(generators.grid(5, 5))), [0], 1).solve(marginals=False)  # compiled
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    before = set(threading.enumerate())
    timer.start()
    with pytest.raises(KeyboardInterrupt), interruptible():
        solver.solve(marginals=False)
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
        assert not thread.is_alive()

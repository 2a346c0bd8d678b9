"""Which solver "auto" takes, what it says when none will do, and the answers kept on disk."""

from __future__ import annotations

import errno
import json
import math
import re
import sys

import numpy as np
import pytest
from small_exact_models import ladder

from spinbench import reference
from spinbench.errors import IntractableError
from spinbench.foundation import plugins
from spinbench.models import FactorGraph, PairwiseModel
from spinbench.reference import cache
from spinbench.reference.counting import ganak
from spinbench.reference.solver import GaveUpError


def test_auto_passes_over_what_does_not_fit_the_memory():
    """Every state of 20 variables in a table, or a tree of width 2."""
    model = PairwiseModel.from_edges(np.zeros(20), [(k, k + 1) for k in range(19)] + [(0, 2)], np.ones(20))
    assert reference.solve(model, cache=False, max_bytes=2**14).method == "bucket_tree"
    with pytest.raises(IntractableError, match=r"model: no exact answer: .* \(max_gib\) and 600 s \(budget\)$"):
        reference.solve(model, cache=False, max_bytes=100)


@pytest.mark.parametrize("lacking", [(), ("goatd",), ("pyganak",), ("goatd", "pyganak")])
def test_refusals_name_the_packages_that_may_help(lacking, monkeypatch):
    """A random formula of 60 variables, which elimination meets in tables that are too large."""
    monkeypatch.setattr(ganak.Ganak, "solve", give_up)
    for package in lacking:
        monkeypatch.setitem(sys.modules, package, None)
    rng = np.random.default_rng(1)
    scopes = [rng.choice(60, size=3, replace=False) for _ in range(240)]
    clauses = [(scope, np.where(np.arange(8) == rng.integers(8), 0.0, 1.0).reshape(2, 2, 2)) for scope in scopes]
    with pytest.raises(IntractableError) as refusal:
        reference.solve(FactorGraph.from_tables((2,) * 60, clauses), cache=False, max_bytes=2**12)
    for package in ("goatd", "pyganak"):
        if plugins.is_there(package) or package in lacking:
            assert str(refusal.value).count(f"pip install {package}") == (package in lacking)


def give_up(*args, **options):
    raise GaveUpError("ganak had not finished counting")


def test_auto_says_what_the_narrowest_way_would_take():
    rng = np.random.default_rng(1)
    edges = np.argwhere(np.triu(rng.random((200, 200)) < 0.2, 1))
    model = PairwiseModel.from_edges(rng.normal(size=200), edges, rng.normal(size=len(edges)), name="dense")
    with pytest.raises(
        IntractableError,
        match=r"^dense: no exact answer: bucket_tree meets width \d+ and would take .*iB of memory and more than 30",
    ):
        reference.solve(model, cache=False)


@pytest.mark.parametrize("n", [60, 1100, 1500])
def test_complete_graphs_are_refused_at_once(n, solvers):
    """No order is searched for and no table made; 2^1500 is no float."""
    edges = np.argwhere(np.triu(np.ones((n, n)), 1))
    couplings = np.random.default_rng(0).normal(size=len(edges))
    model = PairwiseModel.from_edges(np.ones(n), edges, couplings, name="complete")
    least = "8" if n == 60 else rf"2.{n - 57}"
    with pytest.raises(
        IntractableError,
        match=rf"^complete: no exact answer: all orders of bucket_tree meet width {n - 1} or more, which takes at "
        rf"least {least} EiB of memory and more than 30 years, and 1 GiB is allowed \(max_gib\)",
    ):
        reference.solve(model, cache=False, max_bytes=2**30, solvers=solvers)


def circulant(size: int, states: int, steps: range) -> FactorGraph:
    """Variables in a ring that share tables with those so many steps ahead."""
    table = np.random.default_rng(0).normal(size=(states, states))
    pairs = [(v, (v + step) % size) for v in range(size) for step in steps]
    return FactorGraph.from_log_tables([states] * size, [(pair, table) for pair in pairs])


@pytest.mark.parametrize(
    ("model", "bits"),
    [
        (circulant(40, 64, range(1, 6)), 6 * 11),
        (circulant(300, 5, range(1, 100)), math.log2(5) * 180),
        (circulant(120, 3, range(1, 60)), math.log2(3) * 119),
    ],
    ids=["searched", "out of reach", "dense"],
)
def test_refusals_count_all_states_of_a_variable(model, bits):
    """At 8 bytes an entry of 2^bits; of variables of two states, a clique has far fewer."""
    with pytest.raises(IntractableError, match="more than 30 years") as refusal:
        reference.solve(model, method="bucket_tree", cache=False)
    figure = re.search(r"(2\^)?([\d.e+]+) EiB", str(refusal.value))
    assert figure is not None
    log2_eib = float(figure[2]) if figure[1] else math.log2(float(figure[2]))
    assert log2_eib + 60 - 3 > bits - 1


def test_a_hub_of_very_many_neighbours_is_no_overflow(solvers):
    """Sparse, and too wide; along the numbering the hub goes first, at 2^2001 entries."""
    rng = np.random.default_rng(0)
    n = 2000
    edges = [(0, v) for v in range(1, n)] + [tuple(sorted(rng.choice(n, 2, replace=False))) for _ in range(3 * n)]
    model = PairwiseModel.from_edges(np.ones(n), np.unique(edges, axis=0), np.ones(len(np.unique(edges, axis=0))))
    with pytest.raises(IntractableError, match=r"bucket_tree meets width \d+ and would take 2.\d+ EiB"):
        reference.solve(model, method="bucket_tree", cache=False, solvers=solvers)


def test_second_call_reads_the_cache(monkeypatch):
    model = ladder()
    first = reference.solve(model)
    monkeypatch.setattr("spinbench.reference.answering.Problem", None)  # nothing may be computed now
    second = reference.solve(model)
    assert (first.cached, second.cached) == (False, True)
    assert (second.log_z, second.method, second.width, second.seconds) == (
        first.log_z,
        first.method,
        first.width,
        first.seconds,
    )
    np.testing.assert_array_equal(second.probabilities, first.probabilities)


def test_cache_keeps_models_methods_and_ragged_marginals_apart():
    graph = FactorGraph.from_log_tables([2, 3, 4, 1], [((0, 1), np.arange(6.0)), ((1, 2), np.arange(12.0) / 3)])
    first = reference.solve(graph)
    again = reference.solve(graph)
    assert again.cached
    assert [len(v) for v in again.marginals] == [2, 3, 4, 1]
    for got, want in zip(again.marginals, first.marginals, strict=True):
        np.testing.assert_array_equal(got, want)
    assert not reference.solve(graph, method="enumeration").cached
    assert not reference.solve(ladder(1)).cached
    assert reference.solve(ladder(1)).log_z != reference.solve(ladder(2)).log_z


def test_answer_without_marginals_is_completed():
    model = ladder()
    assert reference.solve(model, marginals=False).marginals == ()
    full = reference.solve(model)
    assert not full.cached
    assert len(full.marginals) == 40
    bare = reference.solve(model, marginals=False)
    assert bare.cached
    assert bare.marginals == ()
    assert reference.solve(model).cached


@pytest.mark.parametrize("damage", ["empty", "cut", "noise", "no checksum", "another log Z", "another model's"])
def test_damaged_files_are_replaced(damage):
    model = ladder()
    expected = reference.solve(model)
    file = cache.path(model, "auto")
    whole = file.read_bytes()
    checksum, told, *_ = whole.split(b"\n")
    if damage == "empty":
        file.write_bytes(b"")
    elif damage == "cut":
        file.write_bytes(whole[:300])
    elif damage == "noise":
        file.write_bytes(np.random.default_rng(0).bytes(2000))
    elif damage == "no checksum":
        file.write_bytes(whole.removeprefix(checksum))
    elif damage == "another log Z":
        other = json.dumps(json.loads(told) | {"log_z": expected.log_z + 5}).encode()
        file.write_bytes(whole.replace(told, other))
    else:
        other = ladder(1)
        reference.solve(other)
        file.write_bytes(cache.path(other, "auto").read_bytes())
    assert file.read_bytes() != whole
    repaired = reference.solve(model)
    assert not repaired.cached
    assert repaired.log_z == expected.log_z
    assert reference.solve(model).cached


def test_a_full_disk_costs_only_the_cache(monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr("os.replace", full)
    assert not reference.solve(ladder()).cached
    assert not reference.solve(ladder()).cached


def test_cache_can_be_turned_off():
    reference.solve(ladder(), cache=False)
    assert not cache.folder().exists()


def test_version_is_part_of_the_key(monkeypatch):
    reference.solve(ladder())
    monkeypatch.setattr(cache, "VERSION", cache.VERSION + 1)
    assert not reference.solve(ladder()).cached


@pytest.mark.parametrize("weights", [[1e308, 1e308], [-1e308, 1e308], [np.float64(3e299), 9e299]])
def test_sums_that_could_overflow_are_refused(weights: list[float]) -> None:
    edges = np.array([[0, 1], [1, 2]])
    pairs = PairwiseModel.from_edges(np.array([-weights[0], -weights[1], 0.0]), edges, np.array(weights))
    tables = FactorGraph.from_log_tables([2, 2], [((0,), [0.0, weights[0]]), ((0, 1), np.full((2, 2), weights[1]))])
    for model in (pairs, tables):
        with pytest.raises(IntractableError, match=r"log weights add up to .*, and sums below 1e\+300 are needed"):
            reference.solve(model, cache=False)

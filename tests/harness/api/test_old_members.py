"""Methods with members of version 0.1 run as they did, with a warning that names today's."""

import re
import warnings
from typing import Any

import numpy as np
import pytest

from spinbench import api
from spinbench.api import Backend, Conformance, Estimate, Kernel, Method, malformed
from spinbench.api.old_members import read_own
from spinbench.errors import UnsupportedError
from spinbench.inference import binding, budget, preflight, registry
from spinbench.inference.budget import Budget
from spinbench.inference.kernels import Wish
from spinbench.models import generators
from spinbench.testing import NumpyBackend


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        ({"takes": "any"}, {"model_form": "any", "kind": "sampler"}),
        ({"anytime": False, "stochastic": False}, {"kind": "direct"}),
        ({"stochastic": False, "started": False}, {"kind": "iteration"}),
        ({"started": False, "stochastic": True}, {"kind": "draws"}),
        ({"needs": frozenset({"arrays", "grad"})}, {"requires": ("grad",)}),
        ({"burnt_in": True}, {"conformance": Conformance(burn_in_first=True)}),
        ({"exact_on_trees": True}, {"conformance": Conformance(exact_on_trees=True)}),
    ],
)
def test_members_of_version_0_1_are_read(old: dict[str, Any], expected: dict[str, object]) -> None:
    with pytest.warns(
        DeprecationWarning, match=rf"Old\.({'|'.join(map(re.escape, old))}) is a member of spinbench 0\.1"
    ):
        method: Any = type("Old", (Method,), old)
    assert {name: getattr(method, name) for name in expected} == expected
    assert Method.conformance == Conformance()


@pytest.mark.filterwarnings("ignore:Old:DeprecationWarning")
def test_a_subclass_keeps_the_kind_that_its_base_says_in_members_of_version_0_1() -> None:
    iteration: Any = type("OldIteration", (Method,), {"stochastic": False})
    lower: Any = type("OldBound", (iteration,), {"started": False})
    sampler: Any = type("OldSampler", (iteration,), {"stochastic": True})
    assert (iteration.kind, lower.kind, sampler.kind) == ("iteration", "iteration", "sampler")


def test_members_of_today_win_where_a_method_serves_both_versions() -> None:
    old = {"takes": "any", "started": False, "burnt_in": True}
    today = {"model_form": "categorical", "kind": "draws", "conformance": Conformance()}
    both: Any = type("Both", (Method,), old | today)
    assert {name: getattr(both, name) for name in today} == today


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("sampler", (True, True, True)),
        ("draws", (True, True, False)),
        ("iteration", (True, False, True)),
        ("direct", (False, False, False)),
    ],
)
def test_members_of_version_0_1_can_be_read_of_methods_of_today(kind: str, expected: tuple[bool, ...]) -> None:
    method: Any = type("Today", (Method,), {"kind": kind, "model_form": "any", "requires": ("grad", "os")})
    with pytest.warns(
        DeprecationWarning,
        match=r"Today\.(anytime|stochastic|started) is a member of spinbench 0\.1; kind is in its place",
    ):
        assert (method.anytime, method.stochastic, method.started) == expected
    with pytest.warns(DeprecationWarning, match=r"Today\.(takes|burnt_in|exact_on_trees) is"):
        assert (method.takes, method.burnt_in, method.exact_on_trees) == ("any", False, False)
    with pytest.warns(DeprecationWarning, match="requires is in its place"):
        assert method.needs == {"arrays", "grad"}


def test_array_operations_of_version_0_1_can_be_called() -> None:
    with pytest.warns(DeprecationWarning, match=r"NumpyBackend\.add_product is a member of spinbench 0\.1"):
        total = NumpyBackend().add_product(np.ones(3), np.full(3, 2.0), np.full(3, 5.0))  # type: ignore[attr-defined]
    assert total.tolist() == [11, 11, 11]
    with pytest.warns(DeprecationWarning, match=r"NumpyBackend\.sigmoid is a member of spinbench 0\.1"):
        assert NumpyBackend().sigmoid(np.zeros(1)).tolist() == [0.5]  # type: ignore[attr-defined]


def test_plans_that_methods_of_version_0_1_predict_are_refused() -> None:
    with pytest.warns(DeprecationWarning, match=r"Slow\.planning_seconds is a member of spinbench 0\.1; a prediction"):
        method: Any = type("Slow", (Method,), {"name": "slow", "planning_seconds": lambda self, model: 99.0})
    model = generators.grid(2, 2, seed=0)
    method.__abstractmethods__ = frozenset()
    slow = method()
    refusal = pytest.raises(UnsupportedError, match="slow: planning takes about 99 s for grid")
    with refusal, preflight.planning(slow, model, Budget.parse("1 s")):
        raise AssertionError("it is planned")


def test_the_old_base_of_backends_can_be_named() -> None:
    with pytest.warns(DeprecationWarning, match=r"spinbench\.api: Accelerators is a member of spinbench 0\.1; Backend"):
        base: Any = api.Accelerators  # type: ignore[attr-defined]
    assert issubclass(type("Own", (base, NumpyBackend), {}), Backend)


def test_an_estimate_takes_arguments_of_version_0_1() -> None:
    with pytest.warns(DeprecationWarning, match=r"Estimate\.converged is a member of spinbench 0\.1; the doubt"):
        estimate = Estimate(converged=False, doubts=("log Z unresolved",))
    assert estimate.doubts == ("not converged", "log Z unresolved")
    with pytest.warns(DeprecationWarning, match=r"Estimate\.(converged|pairs_se)"):
        assert Estimate(converged=True, pairs=np.ones(1), pairs_se=np.ones(1)).doubts == ()


def test_an_estimate_tells_what_results_alone_tell_today() -> None:
    estimate: Any = Estimate(doubts=("log Z unresolved",))
    with pytest.warns(DeprecationWarning, match=r"Estimate\.(status|doubted) is a member of .*; its `doubts`"):
        assert (estimate.status, estimate.doubted("log Z"), estimate.doubted("marginals")) == (
            "log Z unresolved",
            True,
            False,
        )


def test_a_kernel_with_temperatures_of_version_0_1_has_todays() -> None:
    old = {name: lambda self, *arguments: arguments for name in ("climb", "slopes")}
    with pytest.warns(DeprecationWarning, match=r"Old\.(climb|slopes) is a member of .*; (temper|slope) is"):
        kernel: Any = type("Old", (Kernel,), old)
    kernel.__abstractmethods__ = frozenset()
    made = kernel(None, None, None, None)
    assert (made.temper(0, 1, 2), made.slope(0)) == ((0, 1, 2), (0,))


def test_the_nearest_definition_of_a_kernels_temperatures_counts() -> None:
    def members(*names: str) -> dict[str, Any]:
        return {name: lambda self, *arguments, name=name: name for name in names}

    with pytest.warns(DeprecationWarning, match=r"Mixed\.(climb|slopes)"):
        mixed: Any = type("Mixed", (type("Mixin", (), members("climb", "slopes")), Kernel), {})
    both: Any = type("Both", (mixed,), members("climb", "slopes", "temper", "slope"))
    for kernel, answers in ((mixed, ("climb", "slopes")), (both, ("temper", "slope"))):
        kernel.__abstractmethods__ = frozenset()
        made = kernel(None, None, None, None)
        assert (made.temper(0, 1, 2), made.slope(0)) == answers


def test_a_warm_up_of_version_0_1_reads_its_engines_temperatures() -> None:
    model = generators.grid(2, 2)
    method = registry.make_method("gibbs", {})
    engine: Any = binding.bind(method, "numpy", model, method.plan(model), wish=Wish("generic")).engine
    state = engine.init(0, np.zeros((4, 3), dtype=np.int8))
    with pytest.warns(DeprecationWarning, match=r"ProgramEngine\.(climb|slopes) is a member of .*; (temper|slope) is"):
        slopes = engine.climb(state, np.ones(2), 3)[1], engine.slopes(state)["slope"]
    assert [each.shape for each in slopes] == [(3, 2, 3), (3,)]


def test_kernels_and_methods_call_their_bases_by_names_of_version_0_1() -> None:
    class Base(Kernel[Any, Any]):
        def temper(self, state: Any, betas: Any, sweeps: int) -> tuple[Any, Any]:
            return "base", betas

    def climb(self: Any, *arguments: Any) -> Any:
        return super(old, self).climb(*arguments), super(old, self).slopes(0)

    with pytest.warns(DeprecationWarning, match=r"Old\.climb"):
        old: Any = type("Old", (Base,), {"climb": climb})
    old.__abstractmethods__ = frozenset()
    with pytest.warns(DeprecationWarning, match=r"Old\.(climb|slopes) is a member of .*; (temper|slope) is"):
        assert old(None, None, None, None).temper(0, 1, 2) == (("base", 1), {})
    with pytest.warns(DeprecationWarning, match=r"Old\.devices is a member of .*; `refuses` is in its place"):
        assert old.devices == {"cpu", "gpu"}
    method: Any = registry.make_method("gibbs", {})
    with pytest.warns(DeprecationWarning, match=r"Method\.step_updates is a member of"):
        assert super(type(method), method).step_updates(None) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert budget.step_updates(method, None) == 0
        assert read_own(Base, "devices", {"tpu"}) == {"tpu"}


def test_an_engine_of_version_0_1_that_is_no_kernel_runs() -> None:
    members = {name: lambda self, *arguments, name=name: name for name in ("init", "advance", "climb", "slopes")}
    engine: Any = type("Bare", (), members)
    with pytest.warns(DeprecationWarning, match=r"Bare\.(climb|slopes) is a member of"):
        assert not malformed.kernel(engine)
    assert (engine().temper(0, 1, 2), engine().slope(0)) == ("climb", "slopes")

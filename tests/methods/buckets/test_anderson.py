"""Accelerated fixed points: as fast as they must be on lines, never worse than where they began, and they end."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from spinbench.methods.buckets.anderson import Descent

FloatArray = npt.NDArray[np.float64]


class Quadratic:
    """x'Ax / 2 - b'x, and gradient steps."""

    def __init__(self, size: int, seed: int, spread: float = 100.0) -> None:
        rng = np.random.default_rng(seed)
        turn = np.linalg.qr(rng.normal(size=(size, size)))[0]
        self.curvature = (turn * np.geomspace(1.0, spread, size)) @ turn.T
        self.slope, self.rate = rng.normal(size=size), 1.0 / spread
        self.least = np.linalg.solve(self.curvature, self.slope)
        self.asked: list[FloatArray] = []

    def valued(self, point: FloatArray) -> tuple[FloatArray, float]:
        self.asked.append(point)
        return point, float(point @ self.curvature @ point / 2 - self.slope @ point)

    def moved(self, point: FloatArray, step: float) -> FloatArray:
        assert point is self.asked[-1], "the map is asked for at the point that was valued last"
        return point - step * self.rate * (self.curvature @ point - self.slope)


def descent(of: Quadratic, room: float = 1e9) -> Descent:
    return Descent(np.zeros(len(of.slope)), of.valued, of.moved, room)


@pytest.mark.parametrize("seed", range(5))
def test_a_linear_map_is_solved_in_hardly_more_steps_than_it_has_dimensions(seed: int) -> None:
    """Anderson acceleration is GMRES there."""
    size = 6
    of = Quadratic(size, seed)
    run = descent(of)
    for _ in range(size + 4):
        run.go_on()
    np.testing.assert_allclose(run.best, of.least, atol=5e-3)  # but for the ridge
    plain = np.zeros(size)
    for _ in range(size + 4):
        plain = plain - of.rate * (of.curvature @ plain - of.slope)
    assert np.abs(plain - of.least).max() > 0.05


@pytest.mark.parametrize("room", [0.0, 1e9])
def test_it_ends_at_its_best_point(room: float) -> None:
    of = Quadratic(30, 0, spread=10.0)
    run = descent(of, room)
    values = [run.value]
    while not run.is_ended:
        run.go_on()
        values.append(run.value)
        assert len(values) < 2000
    assert values == sorted(values, reverse=True)
    best = run.finish()
    assert of.asked[-1] is best
    np.testing.assert_allclose(best, of.least, atol=1e-3)


def test_a_step_that_leads_up_is_halved_and_taken_back() -> None:
    of = Quadratic(5, 2)
    run = Descent(of.least, of.valued, lambda point, step: of.moved(point, step) + step, 1e9)
    while not run.is_ended:
        run.go_on()
    assert run.best is of.least
    assert run.finish() is of.asked[-1]

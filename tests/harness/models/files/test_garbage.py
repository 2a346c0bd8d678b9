"""The garbage collector rests where many objects are made, and goes on as it was."""

from __future__ import annotations

import gc

import pytest

from spinbench.models.formats import uncollected


@pytest.mark.parametrize("running", [True, False])
def test_it_rests_inside_and_is_left_as_it_was(running: bool) -> None:
    before = gc.isenabled()
    (gc.enable if running else gc.disable)()
    try:
        with uncollected(), uncollected():
            assert not gc.isenabled()
        assert gc.isenabled() == running
        with pytest.raises(ValueError, match="inside"), uncollected():
            raise ValueError("inside")
        assert gc.isenabled() == running
    finally:
        (gc.enable if before else gc.disable)()

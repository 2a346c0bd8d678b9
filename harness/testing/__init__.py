"""The conformance suite: what every backend, and every method on it, has to pass. Plugins run it, too.

With pytest:

>>> import pytest
>>> from spinbench.testing import checks
>>> @pytest.mark.parametrize("check", checks(backend="mine"), ids=str)
... def test_conformance(check):
...     check()

From the command line: `spinbench check --backend mine`.
"""

from __future__ import annotations

from spinbench.backends.numpy import NumpyBackend
from spinbench.testing.check import Check, CheckError
from spinbench.testing.suite import backend_checks, checks, method_checks

__all__ = ["Check", "CheckError", "NumpyBackend", "backend_checks", "checks", "method_checks"]

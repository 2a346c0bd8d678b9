"""Errors meant for users: one sentence that says what was given, what is allowed and where to look.

The command line prints the sentence and exits with status 2; the Python API raises it. Anything else that is
raised is a defect of spinbench or of a plugin, and keeps its traceback.
"""

from __future__ import annotations


class SpinbenchError(Exception):
    """Base of all errors with a message for the user."""


class ModelError(SpinbenchError, ValueError):
    """A model, a model file or evidence is not valid."""


class IntractableError(SpinbenchError):
    """An exact answer would need more memory or time than is allowed; the message names both."""


class UnsupportedError(SpinbenchError):
    """A (method, backend, model) combination does not exist; the message says why and where the method runs."""


class ConversionError(ModelError, UnsupportedError):
    """A model cannot be written in the form that is asked for; the message says what stands in the way."""


class InvalidResultError(SpinbenchError):
    """A plugin's numbers cannot be a result; the message names method, backend, number and place."""


class UnavailableError(SpinbenchError):
    """A plugin exists but its dependency is not installed; the message holds the install command."""


class UnknownNameError(SpinbenchError, KeyError):
    """No plugin, model or setting of this name; the message offers the closest names."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class BrokenPluginError(SpinbenchError):
    """A plugin raised while it was imported; the message names its distribution and its error."""


class BudgetError(SpinbenchError, ValueError):
    """A budget is malformed, or too small for a single sample."""


class HistoryError(SpinbenchError):
    """Results cannot enter asv's history; the message says why. Records are kept all the same."""

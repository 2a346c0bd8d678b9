"""Columns of samples in the order of a model's variables."""

from __future__ import annotations

import re
from collections.abc import Hashable

import numpy as np

from spinbench.errors import SpinbenchError
from spinbench.models import Model


def order_variables(
    values: np.ndarray, labels: tuple[Hashable, ...], model: Model, name: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """In the model's order, by labels where these are the model's."""
    names = list(model.labels) or list(range(model.num_variables))
    places = {str(label): place for place, label in enumerate(labels)}
    if len(places) < len(labels):
        twice = next(label for place, label in enumerate(labels) if places[str(label)] != place)
        raise SpinbenchError(f"{name}: two columns are named {twice!r}")
    if labels and not model.labels:
        places = _by_number(places, model.num_variables)
    if labels and all(str(label) in places for label in names):
        return values[[places[str(label)] for label in names]], ("columns are found by their labels",)
    if (labels and model.labels) or len(values) != model.num_variables:
        lacking = next((label for label in names if str(label) not in places), None)
        raise SpinbenchError(f"{name}: no column is named as the model's variable {lacking!r}")
    return values, ("columns are in the order of the model's variables",)


def _by_number(places: dict[str, int], variables: int) -> dict[str, int]:
    """Places of columns by their numbers alone, where they have one word before these, as x0, x1, …; else as they are.

    Numbers begin at 0 or 1.
    """
    matches = [re.fullmatch(r"(\D*?)\[?(\d+)\]?", label) for label in places]
    prefixes = {match[1] for match in matches if match}
    numbers = [int(match[2]) for match in matches if match]
    least = min(numbers, default=0)
    if len(prefixes) != 1 or None in matches or sorted(numbers) != list(range(least, least + variables)) or least > 1:
        return places
    return {str(number - least): place for number, place in zip(numbers, places.values(), strict=True)}

"""A state of high probability, by simulated annealing and coordinate ascent on the host."""

from __future__ import annotations

import hashlib
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.graphs.rows import FloatArray, Windows
from spinbench.mathematics.graphs.sweep_layouts import Scan, Sweep
from spinbench.models import PairwiseModel

# Largest number of single-site updates of the annealing, about a second in NumPy, divided among sweeps and parallel
# searches.
UPDATES = 2.5e7
# Largest number of vectorised block updates: the time of small blocks is that of a call.
CALLS = 40_000
MAX_SWEEPS, MIN_SWEEPS, MAX_SEARCHES = 200, 4, 16
# Modes of models that still exist, by kind of tables, order and seed.
_KNOWN: WeakKeyDictionary[PairwiseModel, dict[tuple[str, bytes, int], npt.NDArray[np.bool_]]] = WeakKeyDictionary()
# Rows among which the next flip is searched in one vector operation.
AHEAD = 128


def find_mode(model: PairwiseModel, order: npt.NDArray[np.int64], tables: Sweep | Scan, seed: int = 0) -> FloatArray:
    """A local maximum of p(s) under changes of one variable, the best of several searches.

    While a model is there, it is known what was found.

    Args:
        model: the model.
        order: (N,) variable of each row of `tables`.
        tables: of a scan.
        seed: of the annealing.

    Returns:
        (N,) 0 and 1 in float64, in the order of the rows.
    """
    modes = _KNOWN.setdefault(model, {})
    key = (type(tables).__name__, hashlib.sha256(order.tobytes()).digest(), seed)
    if key not in modes:
        modes[key] = _search_mode(model, order, tables, seed) > 0
    return modes[key].astype(np.float64)


def _search_mode(model: PairwiseModel, order: npt.NDArray[np.int64], tables: Sweep | Scan, seed: int) -> FloatArray:
    n = model.num_variables
    blocks = len(tables.rows) if isinstance(tables, Scan) else len(tables.first + tables.middle + tables.last)
    # Gathering an entry of W costs about as much as an update.
    work = n + 2 * model.num_edges * (0.05 if _is_dense(tables) else 0.5)
    searches = int(np.clip(UPDATES / (MAX_SWEEPS * work), 1, MAX_SEARCHES))
    sweeps = int(np.clip(min(UPDATES / (searches * work), CALLS / blocks), MIN_SWEEPS, MAX_SWEEPS))
    rng = np.random.default_rng(seed)
    scale = np.sqrt((np.sum(model.biases**2) + 2 * np.sum(model.couplings**2)) / n)
    # From three times the scale of the fields, where states are nearly free, to a thirtieth, where they are frozen.
    temperatures = np.geomspace(3.0, 0.03, sweeps) * scale
    s = np.zeros((n, searches))
    fields = running_fields(tables, s)
    for temperature in temperatures:
        _sweep(tables, s, fields, rng, temperature)
    for _ in range(MAX_SWEEPS if n * MAX_SWEEPS <= UPDATES else 10):
        before = s.copy()
        _sweep(tables, s, fields, rng, 0.0)
        if (before == s).all():
            break
    if searches == 1:
        return s[:, 0].copy()
    states = np.empty((searches, n))
    states[:, order] = s.T
    return s[:, int(model.log_weight(states).argmax())].copy()


def _is_dense(tables: Sweep | Scan) -> bool:
    if isinstance(tables, Scan):
        return tables.columns is None
    return any(block.neighbours is None and block.windows is None for block in tables.first)


def running_fields(tables: Sweep | Scan, s: FloatArray) -> FloatArray | None:
    """(N,) the fields of states (N, R) that are kept from sweep to sweep: of a single one of long rows, else None."""
    if not isinstance(tables, Scan) or tables.columns is not None or s.shape[1] > 1:
        return None
    if not np.array_equal(tables.rows.ravel(), np.arange(len(s))):
        return None
    return np.asarray(tables.biases + (tables.weights @ s[:, 0] if s.any() else 0.0))


def _sweep(
    tables: Sweep | Scan, s: FloatArray, fields: FloatArray | None, rng: np.random.Generator, temperature: float
) -> None:
    """Heat-bath updates of the states s (N, R), and of their fields, in place; at 0 the most probable values."""
    if isinstance(tables, Scan) and fields is not None:
        _sweep_rows(tables, s[:, 0], fields, rng, temperature)
        return
    if isinstance(tables, Scan):
        _sweep_chunks(tables, s, rng, temperature)
        return
    low = 0
    for block in tables.first + tables.middle + tables.last:
        high = low + block.biases.size
        if block.windows is None:
            pull = _pull(block.neighbours, block.weights, s)
        else:
            pull = _pull_windows(block.windows, block.weights, s)
        s[low:high] = _draw_binary(block.biases[:, None] + pull, rng, temperature)
        low = high


def _sweep_chunks(scan: Scan, s: FloatArray, rng: np.random.Generator, temperature: float) -> None:
    for b in range(len(scan.rows)):
        flat = scan.rows[b][scan.valid[b] > 0]
        if scan.columns is None:
            pull = scan.weights[flat] @ s
        else:
            entries = scan.start[flat] + scan.window[:, None]
            weights = np.where(scan.window[:, None] < scan.degree[flat], scan.weights[entries], 0.0)
            pull = _pull(scan.columns[entries], weights[:, :, None], s)
        s[flat] = _draw_binary(scan.biases[flat, None] + pull, rng, temperature)


def _sweep_rows(scan: Scan, s: FloatArray, fields: FloatArray, rng: np.random.Generator, temperature: float) -> None:
    """Row by row, of a single state (N,); a row of W is added to its fields when its value flips."""
    thresholds, on = np.zeros(len(s)), s > 0
    if temperature > 0:
        with np.errstate(divide="ignore"):
            thresholds = 2 * temperature * np.arctanh(2 * rng.random(len(s)) - 1)
    at = 0
    while at < len(s):
        some = slice(at, at + AHEAD)
        flips = (fields[some] > thresholds[some]) != on[some]
        step = int(flips.argmax())
        if not flips[step]:
            at += len(flips)
            continue
        at += step
        on[at] = not on[at]
        (np.add if on[at] else np.subtract)(fields, scan.weights[at], out=fields)
        at += 1
    s[:] = on


def _pull(neighbours: npt.NDArray[np.int64] | None, weights: FloatArray, s: FloatArray) -> FloatArray:
    """(n, R) sums over neighbours."""
    if neighbours is None:
        return np.asarray(weights @ s)
    pull = np.zeros((neighbours.shape[1], s.shape[1]))
    for near, weight in zip(neighbours, weights, strict=True):
        pull += weight * s[near]
    return pull


def _pull_windows(windows: Windows, weights: FloatArray, s: FloatArray) -> FloatArray:
    padded = np.pad(s, ((len(windows.margin),) * 2, (0, 0)))
    n = weights.shape[1]
    pull = np.zeros((n, s.shape[1]))
    for start, weight in zip(windows.starts, weights, strict=True):
        pull += weight * padded[start : start + n]
    return pull


def _draw_binary(x: FloatArray, rng: np.random.Generator, temperature: float) -> npt.NDArray[np.bool_]:
    if temperature == 0:
        return x > 0
    return 2 * rng.random(x.shape) - 1 < np.tanh(x / (2 * temperature))

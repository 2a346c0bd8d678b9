"""What to use when, in sentences that are computed from boards, with their counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from spinbench.foundation.remarks import format_count
from spinbench.inference import kernels, registry
from spinbench.reporting.profiles import contributions
from spinbench.reporting.profiles.boards import Board, performance_profiles

# A solver whose verdicts doubt, or that fails, in more than this share of its runs is named.
UNRELIABLE = 0.5


def recommendations(boards: Sequence[Board]) -> list[str]:
    """One sentence a finding: first where another library is better than all that is ours, then what to take, then what
    seldom has an answer.

    Args:
        boards: of one budget each; those of seconds to an error have no sentences.
    """
    rated = [board for board in boards if board.quantity.tolerance is not None and board.solvers]
    return [
        *(sentence for board in rated for sentence in _better_libraries(board)),
        *(_first_choice(board) for board in rated),
        *(sentence for board in rated for sentence in _choices_by_class(board)),
        *_unreliable(rated),
    ]


def is_library(solver: str) -> bool:
    """Whether "METHOD.BACKEND" and its settings name another library's backend; an unknown one is none."""
    backend = solver.split()[0].partition(".")[2]
    return backend in registry.names("backends") and kernels.is_peer(backend)


def _after(board: Board) -> str:
    return f"{board.quantity.name} after {board.budget}"


def _scores(board: Board) -> np.ndarray:
    return contributions.right_decimals(board.values, board.quantity.floor)


def _members(board: Board) -> Iterator[tuple[str, np.ndarray]]:
    for name in dict.fromkeys(board.classes):
        yield name, np.flatnonzero([each == name for each in board.classes])


def _better_libraries(board: Board) -> Iterator[str]:
    library = np.array([is_library(solver) for solver in board.solvers])
    if library.all() or not library.any():
        return
    for name, rows in _members(board):
        mean = _scores(board)[rows].mean(axis=0)
        first, ours = int(np.where(library, mean, -1.0).argmax()), int(np.where(library, -1.0, mean).argmax())
        if mean[first] > mean[ours]:
            yield (
                f"On {name}, {board.solvers[first]}, another library, is better than all methods here in "
                f"{_after(board)}: {mean[first]:.2f} right decimals, {board.solvers[ours]} {mean[ours]:.2f} (means "
                f"over {format_count(len(rows), 'model')})."
            )


def _first_choice(board: Board) -> str:
    ratios = board.ratios
    best, near = (ratios == 1).sum(axis=0), performance_profiles(ratios, np.array([2.0, 10.0]))
    mean, virtual = _scores(board).mean(axis=0), _scores(board).max(axis=1).mean()
    i, ties = int(mean.argmax()), int(np.isclose(mean, mean.max(), rtol=0, atol=1e-12).sum()) - 1
    tied = f" (as many as {ties} others)" if ties else ""
    return (
        f"For {_after(board)}, {board.solvers[i]} has the most right decimals{tied}, {mean[i]:.2f}, where the best "
        f"solver of each model has {virtual:.2f}: best or tied on {best[i]} of "
        f"{format_count(len(board.models), 'model')}, within twice the best on {100 * near[0, i]:.0f} %, within "
        f"ten times on {100 * near[1, i]:.0f} %."
    )


def _choices_by_class(board: Board) -> Iterator[str]:
    overall = int(_scores(board).mean(axis=0).argmax())
    for name, rows in _members(board):
        mean = _scores(board)[rows].mean(axis=0)
        i = int(mean.argmax())
        if mean[i] > mean[overall]:
            yield (
                f"On {name}, {board.solvers[i]} has more in {_after(board)}: {mean[i]:.2f} right decimals against "
                f"{mean[overall]:.2f} (means over {format_count(len(rows), 'model')})."
            )


def _unreliable(boards: Sequence[Board]) -> Iterator[str]:
    for board in boards:
        named = []
        for solver, count in zip(board.solvers, board.counts, strict=True):
            runs, answered = count.total() - count["not run"], count["ok"]
            if runs and runs - answered > UNRELIABLE * runs:
                refused = f" ({count['refused']} refused)" if count["refused"] else ""
                named.append(f"{solver} in {answered} of {runs} runs{refused}")
        if named:
            yield f"Vouched for in half of their runs or less, {_after(board)}: {', '.join(named)}."

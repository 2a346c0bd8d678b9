"""libDAI: junction trees and loopy belief propagation, by a program of ours that calls the library.

Of libDAI's own programs one writes no log Z and the other one six digits, after approximations that may take longer
than the answer; its manual says to call the library. `libdai.cpp` beside this module does, and no more.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from spinbench.api import Backend, FactorGraph, Kernel, Model, States
from spinbench.backends.peers import library, program
from spinbench.errors import InvalidResultError, UnsupportedError
from spinbench.mathematics.graphs.message_layouts import Graph
from spinbench.methods.messages.bp import BeliefPropagation, Tables
from spinbench.methods.messages.fixed_points import State, statistics

SOURCE = Path(__file__).with_suffix(".cpp")
PROGRAM = "spinbench-libdai"
SCHEDULES = {"auto": "SEQMAX", "residual": "SEQMAX", "parallel": "PARALL", "sequential": "SEQFIX"}


class LibDAIBackend(library.LibraryBackend):
    """libDAI 0.3."""

    name = "libdai"
    programs: ClassVar[tuple[str, ...]] = (PROGRAM,)
    install = f"build libDAI (make lib DEBUG=) and g++ -O3 -o {PROGRAM} {SOURCE} -ldai -lgmpxx -lgmp, for the PATH"


class LibDAIExact(program.ProgramAnswer):
    """log Z and all marginals, by HUGIN updates on a junction tree of a min-fill order."""

    most_nats = 300.0
    command = (PROGRAM, "{model}", "JTREE[updates=HUGIN,heuristic=MINFILL]", "{mar}", "{pr}")


class LibDAIBP(Kernel[Tables, State]):
    """`bp`: its messages are handed out, so that beliefs and Bethe's log Z follow as for every other backend."""

    seconds: ClassVar[float] = 60.0
    notes = (
        "the program starts anew at each call, and the messages from uniform ones",
        "libdai has converged, and its residual is told, by the largest change of a belief, not of a message",
    )

    @classmethod
    def refuses(cls, method: BeliefPropagation, backend: Backend, model: Model) -> str:
        return library.setting_refusal(backend, method, {"restarts": (1,)})

    def __init__(self, method: BeliefPropagation, backend: Backend, model: Model, tables: Tables) -> None:
        if not len(tables.graph.first):
            raise UnsupportedError(
                f"libdai takes models of one variable or more; {model.name}, simplified, has none left"
            )
        self._method, self._graph = method, tables.graph
        self._folder = program.folder_of(lower(tables.graph))

    def init(self, seed: int, start: States) -> State:
        return State(np.zeros((0, 1)), *np.zeros((3, 1)))

    def advance(self, state: State, steps: int) -> tuple[State, dict[str, np.ndarray]]:
        if not state.converged[0]:
            state = self._run(int(state.iterations[0]) + steps)
        return state, statistics("messages", state.values, state)

    def _run(self, steps: int) -> State:
        method, home = self._method, Path(self._folder.name)
        settings = f"tol={method.tolerance!r},maxiter={steps},damping={method.damping!r},logdomain=1"
        name = f"BP[updates={SCHEDULES[method.schedule]},{settings}]"
        messages_file = home / "messages"
        program.call_program(
            "libdai", (PROGRAM, "{model}", name, "{mar}", "{pr}", str(messages_file)), home, self.seconds
        )
        try:
            head, *lines = messages_file.read_text().splitlines()
            iterations, change = (float(token) for token in head.split())
            messages = _gather_messages(self._graph, lines)
        except (OSError, ValueError, KeyError) as error:
            raise InvalidResultError(f"libdai wrote no readable messages: {error}") from None
        converged = np.array([float(change <= method.tolerance)])
        return State(messages, np.array([change]), np.array([iterations]), converged)


def lower(graph: Graph) -> FactorGraph:
    """The graph as a model: a factor of each variable first, then the pairs, then the groups, one after another."""
    sizes, variable = graph.cardinalities.tolist(), graph.variable
    ends = np.append(graph.first, len(graph.theta))
    tables = [((v,), np.append(0.0, graph.theta[ends[v] : ends[v + 1]])) for v in range(len(sizes))]
    for weight, scope in zip(graph.pairs.weights, variable[graph.pairs.rows.T], strict=True):
        tables.append((tuple(scope.tolist()), np.array([[0.0, 0.0], [0.0, weight]])))
    for group in graph.groups:
        for table, scope in zip(group.log_tables, variable[group.rows.T], strict=True):
            tables.append((tuple(scope.tolist()), table))
    return FactorGraph.from_log_tables(sizes, tables)


def _gather_messages(graph: Graph, lines: list[str]) -> np.ndarray:
    """(M, 1) messages in the layout of the graph, as log ratios to the first state."""
    logs_by_edge = {}
    for line in lines:
        factor, v, *values = line.split()
        logs = np.array(values, dtype=np.float64)
        logs_by_edge[int(factor), int(v)] = np.maximum(logs - logs.max(), graph.floor)
    variable, ratios_by_edge = graph.variable, [np.empty(0)]
    place = len(graph.first)
    for rows in (graph.pairs.rows, *(group.rows for group in graph.groups)):
        for row in variable[rows]:
            ratios = (logs_by_edge[place + k, int(v)] for k, v in enumerate(row))
            ratios_by_edge += [logs[1:] - logs[0] for logs in ratios]
        place += rows.shape[1]
    return np.concatenate(ratios_by_edge)[:, None]

"""PGMax: loopy belief propagation compiled by JAX, all messages at once.

Its iteration stands in a loop that ends at the tolerance or after so many iterations, which its own `run` does not.
Its messages are handed out as those of `bp`, from which beliefs and Bethe's log Z follow as for every other backend.
Version 0.6.1 asks jax.lib.xla_bridge, which JAX has dropped, for the platform: it is lent the function that replaced
it.
"""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import TYPE_CHECKING, ClassVar
from unittest import mock

import numpy as np

from spinbench.api import Backend, BackendProfile, Index, Kernel, Model, States
from spinbench.backends.peers import library
from spinbench.errors import UnsupportedError
from spinbench.methods.messages.bp import BeliefPropagation, Tables
from spinbench.methods.messages.fixed_points import State, statistics

if TYPE_CHECKING:
    from jax import Array as JaxArray
    from pgmax import infer

    # (messages, number of iterations, largest change in the last iteration).
    Round = tuple[infer.BPArrays, Index, JaxArray]

ALLOWED = {"schedule": ("auto", "parallel"), "restarts": (1,)}


class PGMaxBackend(library.JaxLibraryBackend):
    """PGMax, in the precision that is asked for."""

    name = "pgmax"
    requires: ClassVar[tuple[str, ...]] = ("pgmax", "jax")
    profile = BackendProfile(packages=("pgmax",))
    install = "pip install --no-deps pgmax"


class PGMaxBP(library.OnJax, Kernel[Tables, State]):
    """`bp` of binary pairs from the same first messages as `BeliefPropagation`."""

    @classmethod
    def refuses(cls, method: BeliefPropagation, backend: Backend, model: Model) -> str:
        return library.setting_refusal(backend, method, ALLOWED)

    def __init__(self, method: BeliefPropagation, backend: Backend, model: Model, tables: Tables) -> None:
        graph = tables.graph
        if graph.groups or not len(graph.pairs.weights):
            raise UnsupportedError(f"pgmax is asked for binary variables in pairs alone, which {model.name} is not")
        from jax.extend.backend import get_backend
        from pgmax import fgraph, fgroup, infer, vgroup

        jax, real = self.load_jax(backend), backend.precision
        jnp = jax.numpy
        edges = len(graph.pairs.weights)
        potentials = np.zeros((edges, 2, 2))
        potentials[:, 1, 1] = graph.pairs.weights
        with self._scope():
            variables = vgroup.NDVarArray(num_states=2, shape=(len(graph.theta),))
            factors = fgraph.FactorGraph(variable_groups=variables)
            ends = [[variables[int(i)], variables[int(j)]] for i, j in graph.pairs.rows.T]
            factors.add_factors(fgroup.PairwiseFactorGroup(variables_for_factors=ends, log_potential_matrix=potentials))
            with mock.patch.object(jax.lib, "xla_bridge", SimpleNamespace(get_backend=get_backend), create=True):
                inferer = infer.build_inferer(factors.bp_state, backend="bp")
            evidence = np.stack([np.zeros(len(graph.theta)), graph.theta], axis=1)
            first = np.stack([np.zeros((edges, 2)), graph.pairs.neutral.T], axis=-1)
            arrays = inferer.init(evidence_updates={variables: jnp.asarray(evidence, real)})
            arrays = dataclasses.replace(arrays, ftov_msgs=jnp.asarray(first.ravel(), real))
            self._start = jax.tree.map(lambda leaf: jnp.asarray(leaf, real), arrays)
        tolerance = method.smallest_change(real)

        def iterate(arrays: infer.BPArrays, steps: Index) -> Round:
            def body(carry: Round) -> Round:
                arrays, count, _ = carry
                arrays, changes = inferer.run_with_diffs(arrays, 1, damping=method.damping, temperature=1.0)
                return arrays, count + 1, (changes[-1] / (1 - method.damping)).astype(real)

            def goes_on(carry: Round) -> JaxArray:
                return (carry[1] < steps) & (carry[2] > tolerance)

            end: Round = jax.lax.while_loop(goes_on, body, (arrays, 0, jnp.asarray(np.inf, real)))
            return end

        self._iterate, self._tolerance = jax.jit(iterate), tolerance

    def init(self, seed: int, start: States) -> State:
        return State(self._start, *np.zeros((3, 1)))

    def advance(self, state: State, steps: int) -> tuple[State, dict[str, np.ndarray]]:
        if not state.converged[0]:
            with self._scope():
                arrays, count, residual = self._jax.block_until_ready(self._iterate(state.values, steps))
            change = np.array([float(residual)])
            state = State(arrays, change, state.iterations + int(count), (change <= self._tolerance).astype(np.float64))
        ends = np.asarray(state.values.ftov_msgs, dtype=np.float64).reshape(-1, 2, 2)
        ratios = (ends[:, :, 1] - ends[:, :, 0]).T.reshape(-1, 1)
        return state, statistics("messages", ratios, state)

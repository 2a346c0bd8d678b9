"""What both generic programs of Gibbs sampling, of pairwise models and of factor graphs, are asked for and become."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from spinbench.api import Array, Key, Program
from spinbench.methods.gibbs.transition import Tables


class Wanted(NamedTuple):
    """What a program does.

    Attributes:
        random: random scan.
        single: a step is one update, not a sweep.
        averaged: keep p (Rao-Blackwellised marginals).
        looks: look from both sides, at chains and at draws of R(. <- s*).
        climbs: know temperatures.
        chib: keep log T of every step.
    """

    random: bool
    single: bool
    averaged: bool
    looks: bool
    climbs: bool
    chib: bool


def assembled(of: Any, wanted: Wanted) -> Program:
    """The contract's view of a `GibbsProgram` or a `GraphProgram`."""
    program = Program(init=of.init, step=of.step, observe=of.observe, warm=of.warm, states=of.states)
    if wanted.climbs:
        program = replace(program, temper=of.temper, slope=of.slope)
    return replace(program, look=of.look) if wanted.looks else program


def either(of_pairs: Program, of_graphs: Program) -> Program:
    """One program for tables of both kinds."""

    def choice(tables: Any) -> Program:
        return of_pairs if isinstance(tables, Tables) else of_graphs

    def temper(key: Key, t: Any, state: Any, beta: Array) -> Any:
        tempered = choice(t).temper
        assert tempered is not None
        return tempered(key, t, state, beta)

    def states(t: Any, state: Any) -> Array:
        found = choice(t).states
        assert found is not None
        return found(t, state)

    return Program(
        init=lambda key, t, start: choice(t).init(key, t, start),
        step=lambda key, t, state: choice(t).step(key, t, state),
        observe=lambda t, state: choice(t).observe(t, state),
        warm=lambda key, t, state: choice(t).warm(key, t, state),
        look=lambda key, t, state: choice(t).look(key, t, state),
        temper=None if of_pairs.temper is None else temper,
        slope=lambda t, state: choice(t).slope(t, state),
        states=states,
    )

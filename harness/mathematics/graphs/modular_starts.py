"""Starts at which a model's strongest linear forms modulo q take the values that they prefer.

The log weight of variables of q states is a sum of functions of linear forms a·x mod q, found by a discrete Fourier
transform: the coefficients at the multiples of a are what depends on a·x alone. As parities of binary variables
(`starts.parity_starts`, where q is 2), such forms are satisfied together by elimination, strongest first, until they
settle every variable; so a planted state is found that no local move leads to. q has to be prime for that.
"""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np

from spinbench.mathematics.graphs.factor_tables import FactorTables, FloatArray, IntArray
from spinbench.mathematics.graphs.table_layouts import FLOOR

# (variables, ascending; their coefficients, of which the first is 1).
Form = tuple[tuple[int, ...], tuple[int, ...]]

PRIMES = (3, 5, 7, 11, 13)
# Largest number of entries of a factor's table over variables of q states; larger factors are ignored.
MAX_ENTRIES = 4096
# Number of the strongest forms that are examined, per variable: elimination needs one per variable, and some contradict
# others.
FORMS_PER_VARIABLE = 4
# Standard deviation of the noise on log strengths, which breaks ties differently in each choice.
NOISE = 0.1
# Largest number of choices per start.
MAX_CHOICES = 16
# Approximate limit of the matrix entries that all choices change; each start has at least one choice.
WORK = 2.0**27
# Strengths below this share of the strongest form's are rounding errors of the Fourier transform.
NEGLIGIBLE = 1e-9


def modular_starts(flat: FactorTables, q: int, starts: int, rng: np.random.Generator) -> IntArray:
    """(N, `starts`) states of the variables of q states, each start the heaviest of some choices.

    Entries of other variables are 0, and those of variables that no form settles are random.

    Args:
        flat: the model.
        q: one of `PRIMES`.
        starts: how many.
        rng: of ties, of what is free, and of the noise in the forms' order.
    """
    n = len(flat.cardinalities)
    members = np.flatnonzero(flat.cardinalities == q)
    states = np.zeros((n, starts), dtype=np.int64)
    states[members] = rng.integers(0, q, (len(members), starts))
    values = linear_forms(flat, q)
    strengths = {form: float(value.max()) for form, value in values.items()}
    least = NEGLIGIBLE * max(strengths.values(), default=0.0)
    forms = [form for form in sorted(strengths, key=lambda form: -strengths[form]) if strengths[form] > least]
    forms = forms[: FORMS_PER_VARIABLE * len(members)]
    if not forms:
        return states
    place = np.zeros(n, dtype=np.int64)
    place[members] = np.arange(len(members))
    rows = np.zeros((len(forms), len(members)), dtype=np.int64)
    for row, (variables, coefficients) in zip(rows, forms, strict=True):
        row[place[list(variables)]] = coefficients
    table = np.array([values[form] for form in forms])
    choices = int(np.clip(WORK / len(members) ** 3 / starts, 1, MAX_CHOICES))
    for start in range(starts):
        best = -np.inf
        for _ in range(choices):
            order = np.argsort(-table.max(axis=1) * np.exp(NOISE * rng.standard_normal(len(forms))))
            x = _solve(rows, table.argmax(axis=1), order, rng.integers(0, q, len(members)), q)
            weight = float(table[np.arange(len(forms)), rows @ x % q].sum())
            if weight > best:
                best = weight
                states[members, start] = x
    return states


def linear_forms(flat: FactorTables, q: int) -> dict[Form, FloatArray]:
    """The part of the log weight that depends on each linear form alone: (q,) by the form's value, with mean 0.

    Factors are averaged over variables that do not have q states; -inf counts as a low weight.
    """
    parts_by_form: dict[Form, FloatArray] = {}
    for f in range(len(flat.offsets) - 1):
        scope = flat.scope_variables[flat.scope_starts[f] : flat.scope_starts[f + 1]]
        sizes = flat.cardinalities[scope]
        count = int((sizes == q).sum())
        if not count or q**count > MAX_ENTRIES:
            continue
        table = finite(flat.values[flat.offsets[f] : flat.offsets[f + 1]]).reshape(sizes)
        table = table.mean(axis=tuple(np.flatnonzero(sizes != q).tolist()))
        variables = scope[sizes == q]
        ascending = np.argsort(variables)
        coefficients = np.fft.fftn(table.transpose(ascending)).ravel() / table.size
        directions, multiples = _projective_vectors(q, count)
        # for each direction, the q - 1 coefficients at its multiples; the coefficient at 0 is the mean over all states
        spectrum = np.zeros((len(directions), q), dtype=np.complex128)
        spectrum[:, 1:] = coefficients[multiples]
        parts = np.fft.ifft(spectrum, axis=1).real * q
        variables = variables[ascending]
        for direction, part in zip(directions, parts, strict=True):
            present = direction > 0
            form = (tuple(variables[present].tolist()), tuple(direction[present].tolist()))
            parts_by_form[form] = parts_by_form.get(form, 0.0) + part
    return parts_by_form


def finite(values: FloatArray) -> FloatArray:
    """The values, with what is low enough to be avoided in place of -inf."""
    is_finite = np.isfinite(values)
    return np.where(is_finite, values, values[is_finite].min() - FLOOR if is_finite.any() else 0.0)


@cache
def _projective_vectors(q: int, count: int) -> tuple[IntArray, IntArray]:
    """(D, count) vectors modulo q whose first entry other than 0 is 1; (D, q - 1) places of their multiples in a table
    of q^count entries."""
    vectors = np.array(list(itertools.product(range(q), repeat=count)), dtype=np.int64)[1:]
    leading = vectors[np.arange(len(vectors)), (vectors > 0).argmax(axis=1)]
    directions = vectors[leading == 1]
    multiples = directions[:, None, :] * np.arange(1, q)[:, None] % q
    return directions, multiples @ q ** np.arange(count)[::-1]


def _solve(rows: IntArray, preferred: IntArray, order: IntArray, free: IntArray, q: int) -> IntArray:
    """(M,) states that satisfy the forms, (F, M) rows, in this order as long as they do not contradict earlier ones.

    Args:
        rows: coefficients.
        preferred: (F,) values of the forms.
        order: (F,) numbers of forms.
        free: (M,) states of the variables that no form settles.
        q: the prime.
    """
    n = rows.shape[1]
    # A settled row v has its pivot at v, and its last entry is the value.
    basis = np.zeros((n, n + 1), dtype=np.int64)
    settled = np.zeros(n, dtype=bool)
    for f in order.tolist():
        row = np.append(rows[f], preferred[f])
        pivots = np.flatnonzero(settled & (row[:-1] != 0))
        row = (row - row[pivots] @ basis[pivots]) % q
        if not row[:-1].any():
            continue
        pivot = int((row[:-1] != 0).argmax())
        # q is prime, so that inverses exist.
        row = row * pow(int(row[pivot]), -1, q) % q
        above = np.flatnonzero(basis[:, pivot])
        basis[above] = (basis[above] - basis[above, pivot, None] * row) % q
        basis[pivot], settled[pivot] = row, True
        if settled.all():
            break
    rest = np.where(settled, 0, free)
    return np.where(settled, (basis[:, -1] - basis[:, :-1] @ rest) % q, free)

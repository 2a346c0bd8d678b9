"""Model families with seeds.

Every family draws from `numpy.random.Generator(PCG64(seed))`, in this order, so that a seed keeps its meaning:
what the graph needs, then one standard normal a variable, then one an edge, edges sorted by (i, j).

Families with the parameters c1, c2, kind and scale carry the weights of Zhang, Sutton, Storkey and Ghahramani
(NIPS 2012, section 5) on a graph: with noise ε_i, ε_ij ~ N(0, scale²),

    W_ij = c2 ε_ij
    kind "standard":          a_i = c1 ε_i
    kind "frustrated":        a_i = c1 (Σ_j W_ij + ε_i)       as printed
    kind "frustrated_minus":  a_i = c1 (-Σ_j W_ij + ε_i)      the sign under which fields oppose couplings
    kind "frustrated_centred": a_i = -½ Σ_j W_ij + c1 ε_i     zero field in the ±1 form, plus noise

The paper writes the noise as N(0, 4): scale = 2, the default, reads 4 as a variance, scale = 4 as a standard
deviation.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from spinbench.foundation.parameters import family
from spinbench.models import lattices
from spinbench.models.checks import check_parameter, make_rng
from spinbench.models.pairwise import PairwiseModel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

Kind = Literal["standard", "frustrated", "frustrated_minus", "frustrated_centred"]
Disorder = Literal["gaussian", "bimodal"]

# Coupling at which the infinite square lattice orders: tanh(2K) = 1/√2 (Kramers and Wannier 1941).
CRITICAL_COUPLING = 0.5 * math.log(1.0 + math.sqrt(2.0))

# Largest number of edges: with their weights they take 1.6 GB.
MAX_EDGES = 50_000_000


@family
def grid(
    rows: int = 10,
    cols: int = 10,
    c1: float = 1.0,
    c2: float = 1.0,
    kind: Kind = "standard",
    scale: float = 2.0,
    seed: int = 0,
) -> PairwiseModel:
    """Open rows × cols grid of the DHMC paper; site (r, c) is variable r·cols + c."""
    check_parameter("grid", rows >= 1 and cols >= 1, f"rows = {rows} and cols = {cols}; both must be 1 or more")
    _check_num_edges("grid", 2 * rows * cols)
    return _gaussian_model(
        "grid", rows * cols, lattices.grid_edges(rows, cols), c1, c2, kind, scale, make_rng("grid", seed)
    )


@family
def complete(
    n: int = 20, c1: float = 1.0, c2: float = 1.0, kind: Kind = "standard", scale: float = 2.0, seed: int = 0
) -> PairwiseModel:
    """All pairs coupled, with the paper's weights."""
    check_parameter("complete", n >= 1, f"n = {n}; it must be 1 or more")
    _check_num_edges("complete", n * (n - 1) // 2)
    return _gaussian_model("complete", n, lattices.complete_edges(n), c1, c2, kind, scale, make_rng("complete", seed))


@family
def random_regular(
    n: int = 100,
    degree: int = 3,
    c1: float = 1.0,
    c2: float = 1.0,
    kind: Kind = "standard",
    scale: float = 2.0,
    seed: int = 0,
) -> PairwiseModel:
    """Random regular graph (drawn by NetworkX from a 32-bit integer of the generator), with the paper's weights."""
    name = "random_regular"
    rng = make_rng(name, seed)
    return _gaussian_model(name, n, _random_regular_edges(name, n, degree, rng), c1, c2, kind, scale, rng)


@family
def ring(
    n: int = 100, c1: float = 1.0, c2: float = 1.0, kind: Kind = "standard", scale: float = 2.0, seed: int = 0
) -> PairwiseModel:
    """A cycle, with the paper's weights."""
    check_parameter("ring", n >= 3, f"n = {n}; it must be 3 or more")
    _check_num_edges("ring", n)
    return _gaussian_model("ring", n, lattices.ring_edges(n), c1, c2, kind, scale, make_rng("ring", seed))


@family
def tree(
    n: int = 100, c1: float = 1.0, c2: float = 1.0, kind: Kind = "standard", scale: float = 2.0, seed: int = 0
) -> PairwiseModel:
    """Random recursive tree (each variable hangs on an earlier one, all as likely), with the paper's weights."""
    check_parameter("tree", n >= 1, f"n = {n}; it must be 1 or more")
    _check_num_edges("tree", n)
    rng = make_rng("tree", seed)
    return _gaussian_model("tree", n, lattices.random_tree_edges(n, rng), c1, c2, kind, scale, rng)


@family
def shortcut_tree(
    n: int = 100,
    shortcuts: int = 10,
    c1: float = 1.0,
    c2: float = 1.0,
    kind: Kind = "standard",
    scale: float = 2.0,
    seed: int = 0,
) -> PairwiseModel:
    """Random recursive tree and further edges, each pair that it does not join as likely, with the paper's weights."""
    name, room = "shortcut_tree", (n - 1) * (n - 2) // 2
    check_parameter(name, n >= 1, f"n = {n}; it must be 1 or more")
    check_parameter(name, 0 <= shortcuts <= room, f"shortcuts = {shortcuts}; a tree of {n} has room for {room}")
    _check_num_edges(name, n + shortcuts)
    rng = make_rng(name, seed)
    edges = lattices.shortcut_tree_edges(n, shortcuts, rng)
    return _gaussian_model(name, n, edges, c1, c2, kind, scale, rng)


@family
def chimera(
    m: int = 4,
    n: int = 4,
    t: int = 4,
    c1: float = 1.0,
    c2: float = 1.0,
    kind: Kind = "standard",
    scale: float = 2.0,
    seed: int = 0,
) -> PairwiseModel:
    """D-Wave's Chimera graph, m × n cells of 2t units (numbered as in `lattices.chimera_edges`)."""
    check_parameter("chimera", min(m, n, t) >= 1, f"m = {m}, n = {n} and t = {t}; all must be 1 or more")
    _check_num_edges("chimera", m * n * t * (t + 2))
    size = 2 * m * n * t
    return _gaussian_model(
        "chimera", size, lattices.chimera_edges(m, n, t), c1, c2, kind, scale, make_rng("chimera", seed)
    )


@family
def rbm(
    visible: int = 64,
    hidden: int = 16,
    c1: float = 1.0,
    c2: float = 1.0,
    kind: Kind = "standard",
    scale: float = 2.0,
    seed: int = 0,
) -> PairwiseModel:
    """Restricted Boltzmann machine, visible units first, with the paper's weights."""
    check_parameter(
        "rbm", min(visible, hidden) >= 1, f"visible = {visible} and hidden = {hidden}; both must be 1 or more"
    )
    _check_num_edges("rbm", visible * hidden)
    edges = lattices.bipartite_edges(visible, hidden)
    return _gaussian_model("rbm", visible + hidden, edges, c1, c2, kind, scale, make_rng("rbm", seed))


@family
def sherrington_kirkpatrick(n: int = 20, beta: float = 1.0, field: float = 0.0, seed: int = 0) -> PairwiseModel:
    """exp(β Σ_{i<j} J_ij σ_i σ_j + β field Σ σ_i), J_ij ~ N(0, 1/n) (Sherrington and Kirkpatrick 1975)."""
    name = "sherrington_kirkpatrick"
    check_parameter(name, n >= 1, f"n = {n}; it must be 1 or more")
    _check_num_edges(name, n * (n - 1) // 2)
    edges = lattices.complete_edges(n)
    J = make_rng(name, seed).standard_normal(len(edges))
    J /= math.sqrt(n)
    J *= beta
    return PairwiseModel.from_spins(np.full(n, beta * field), edges, J, name=name)


@family
def torus(rows: int = 16, cols: int = 16, coupling: float = CRITICAL_COUPLING, field: float = 0.0) -> PairwiseModel:
    """Ising model exp(K Σ σ_i σ_j + h Σ σ_i) on a periodic square lattice of 2·rows·cols bonds.

    At side length 2 two bonds join the same pair, as in Kaufman's formula.
    """
    check_parameter("torus", rows >= 2 and cols >= 2, f"rows = {rows} and cols = {cols}; both must be 2 or more")
    _check_num_edges("torus", 2 * rows * cols)
    edges = lattices.torus_edges(rows, cols)
    return PairwiseModel.from_spins(np.full(rows * cols, field), edges, np.full(len(edges), coupling), name="torus")


@family
def planar_glass(
    rows: int = 16, cols: int = 16, beta: float = 1.0, disorder: Disorder = "gaussian", seed: int = 0
) -> PairwiseModel:
    """Edwards–Anderson glass exp(β Σ J_ij σ_i σ_j) in zero field on an open grid, so planar.

    J_ij ~ N(0, 1), or ±1 by the sign of the same draw ("bimodal").
    """
    name = "planar_glass"
    check_parameter(name, rows >= 1 and cols >= 1, f"rows = {rows} and cols = {cols}; both must be 1 or more")
    _check_num_edges(name, 2 * rows * cols)
    edges = lattices.grid_edges(rows, cols)
    J = _sample_disorder(name, disorder, len(edges), make_rng(name, seed))
    return PairwiseModel.from_spins(np.zeros(rows * cols), edges, beta * J, name=name)


@family
def cubic_glass(size: int = 6, beta: float = 0.5, disorder: Disorder = "bimodal", seed: int = 0) -> PairwiseModel:
    """Edwards–Anderson glass exp(β Σ J_ij σ_i σ_j) in zero field on a periodic cubic lattice of size³ spins.

    J_ij = ±1, or N(0, 1) ("gaussian"). At size 2 two bonds join the same pair.
    """
    name = "cubic_glass"
    check_parameter(name, size >= 2, f"size = {size}; it must be 2 or more")
    _check_num_edges(name, 3 * size**3)
    edges = lattices.cubic_edges(size)
    J = _sample_disorder(name, disorder, len(edges), make_rng(name, seed))
    return PairwiseModel.from_spins(np.zeros(size**3), edges, beta * J, name=name)


@family
def regular_glass(
    n: int = 100,
    degree: int = 3,
    beta: float = 1.0,
    disorder: Disorder = "bimodal",
    field: float = 0.3,
    seed: int = 0,
) -> PairwiseModel:
    """Edwards–Anderson glass exp(β Σ J_ij σ_i σ_j + Σ h_i σ_i), h_i ~ N(0, field²), on a random regular graph.

    J_ij = ±1, or N(0, 1) ("gaussian").
    """
    name = "regular_glass"
    rng = make_rng(name, seed)
    edges = _random_regular_edges(name, n, degree, rng)
    h = field * rng.standard_normal(n)
    return PairwiseModel.from_spins(h, edges, beta * _sample_disorder(name, disorder, len(edges), rng), name=name)


@family
def random_field(
    rows: int = 16, cols: int = 16, beta: float = 0.44, field: float = 0.1, seed: int = 0
) -> PairwiseModel:
    """Ferromagnet exp(β Σ σ_i σ_j + Σ h_i σ_i), h_i ~ N(0, field²), on an open grid (Imry and Ma 1975)."""
    name = "random_field"
    check_parameter(name, rows >= 1 and cols >= 1, f"rows = {rows} and cols = {cols}; both must be 1 or more")
    _check_num_edges(name, 2 * rows * cols)
    edges = lattices.grid_edges(rows, cols)
    h = field * make_rng(name, seed).standard_normal(rows * cols)
    return PairwiseModel.from_spins(h, edges, np.full(len(edges), beta), name=name)


def _random_regular_edges(name: str, n: int, degree: int, rng: np.random.Generator) -> IntArray:
    check_parameter(name, 0 <= degree < n, f"degree = {degree} and n = {n}; 0 <= degree < n is needed")
    check_parameter(name, degree * n % 2 == 0, f"degree = {degree} and n = {n}; degree times n must be even")
    _check_num_edges(name, max(n, degree * n // 2))
    # NetworkX uses Python's generator, which gets a seed from this one.
    return lattices.random_regular_edges(n, degree, int(rng.integers(2**32)))


def _sample_disorder(name: str, disorder: Disorder, edges: int, rng: np.random.Generator) -> FloatArray:
    """J_ij ~ N(0, 1), or ±1 by the sign of the same draw."""
    allowed = ("gaussian", "bimodal")
    check_parameter(name, disorder in allowed, f"disorder = {disorder!r}; 'gaussian' and 'bimodal' are allowed")
    # Drawn for both kinds of disorder, so that a seed gives the same signs.
    J: FloatArray = rng.standard_normal(edges)
    if disorder == "gaussian":
        return J
    return np.where(J < 0, -1.0, 1.0)


def _gaussian_model(
    name: str,
    n: int,
    edges: IntArray,
    c1: float,
    c2: float,
    kind: Kind,
    scale: float,
    rng: np.random.Generator,
) -> PairwiseModel:
    """The weights of the module's docstring."""
    kinds = ("standard", "frustrated", "frustrated_minus", "frustrated_centred")
    check_parameter(name, kind in kinds, f"kind = {kind!r}; {', '.join(map(repr, kinds))} are allowed")
    noise = scale * rng.standard_normal(n)
    W = rng.standard_normal(len(edges))
    W *= c2 * scale
    biases: FloatArray = c1 * noise
    if kind != "standard":
        total = np.bincount(edges.ravel(), np.repeat(W, 2), minlength=n)
        biases = {
            "frustrated": c1 * (total + noise),
            "frustrated_minus": c1 * (noise - total),
            "frustrated_centred": biases - 0.5 * total,
        }[kind]
    return PairwiseModel.from_edges(biases, edges, W, name=name)


def _check_num_edges(name: str, num_edges: int) -> None:
    check_parameter(
        name, num_edges <= MAX_EDGES, f"the graph would have {num_edges:,} edges; at most {MAX_EDGES:,} are allowed"
    )

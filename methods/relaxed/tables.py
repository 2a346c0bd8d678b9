"""What the samplers of the relaxation prepare, and what all of them do with it."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import Array, Namespace
from spinbench.foundation.trees import OnHost
from spinbench.mathematics.relaxation.density import EdgeFactor, Relaxation, Sites
from spinbench.mathematics.relaxation.estimators import MAX_VARIABLES
from spinbench.methods.relaxed import family

FloatArray = npt.NDArray[np.float64]
# Representation x = A α and the stored form of Q. harmonium: A = Λ^(-½)Vᵀ and a root B = VΛ^½; the other forms have A =
# I. precision: a triangular root and Q⁻¹; gram: such a root and Q; edges: Q as a sum over edges.
Factor = Literal["harmonium", "precision", "gram", "edges"]


class RelaxedTables(NamedTuple):
    """A model's relaxation; which members are None depends on the factor.

    Attributes:
        d: (N,) float64, the diagonal D.
        bias: (N,) float64, b = a - d/2.
        root: (N, N) float64 R with Q = RRᵀ: lower triangular, but B = VΛ^½ for the harmonium; None for edges.
        precision: (N, N) float64, Q⁻¹.
        gram: (N, N) float64, Q.
        edges: for products with Q and draws of N(0, Q).
        sites: how 1-of-K groups are drawn; None for models without groups.
        first_step: () float64, the step size to start from, or the fixed one.
        relaxation: of the model, for estimates.
    """

    d: FloatArray
    bias: FloatArray
    root: FloatArray | None
    precision: FloatArray | None
    gram: FloatArray | None
    edges: EdgeFactor | None
    sites: Sites | None
    first_step: FloatArray
    relaxation: OnHost[Relaxation]


def build_tables(relaxation: Relaxation, factor: Factor, first_step: float) -> RelaxedTables:
    """Errors as of the parts of `Relaxation`."""
    root, precision, gram, edges = None, None, None, None
    match factor:
        case "harmonium":
            root = relaxation.harmonium
        case "precision":
            root, precision = relaxation.cholesky, relaxation.precision
        case "gram":
            root, gram = relaxation.cholesky, relaxation.gram
        case "edges":
            edges = relaxation.edge_factor
    return RelaxedTables(
        d=relaxation.d,
        bias=relaxation.bias,
        root=root,
        precision=precision,
        gram=gram,
        edges=edges,
        sites=relaxation.sites,
        first_step=np.array(first_step),
        # one without the matrices that this one keeps
        relaxation=OnHost(Relaxation(relaxation.model, relaxation.d)),
    )


def normals_per_draw(tables: RelaxedTables) -> int:
    """Standard normal numbers that a draw of x takes: one a variable and, of edges, one an edge."""
    n = tables.bias.shape[0]
    if tables.edges is None:
        return int(n)
    return int(n + tables.edges.weights.shape[0])


def draw_position(xp: Namespace, tables: RelaxedTables, s: Array, noise: Array) -> Array:
    """(N, C): x ~ p(x|s) for s (N, C), from standard normal numbers (`normals_per_draw`, C)."""
    if tables.edges is not None:
        return family.edge_gram_product(xp, tables.edges, s, noise)
    if tables.gram is not None:
        return xp.matmul(tables.gram, s) + xp.matmul(tables.root, noise)
    root: Array = tables.root
    z = xp.matmul(root.T, s) + noise
    if tables.precision is None:
        return z
    return xp.matmul(root, z)


def draw_velocity(xp: Namespace, tables: RelaxedTables, noise: Array) -> Array:
    """(N, C): a draw of N(0, Q) from standard normal numbers (`normals_per_draw`, C)."""
    if tables.edges is None:
        return xp.matmul(tables.root, noise)
    return family.edge_noise(xp, tables.edges, noise)


def gram_product(xp: Namespace, tables: RelaxedTables, v: Array) -> Array:
    """(N, C): Qv, of the factors that have it."""
    if tables.edges is None:
        return xp.matmul(tables.gram, v)
    return family.edge_gram_product(xp, tables.edges, v)


def unit_log_odds(xp: Namespace, tables: RelaxedTables, x: Array) -> Array:
    """(N, C): u = α + b at positions x."""
    harmonium = tables.edges is None and tables.gram is None and tables.precision is None
    return (xp.matmul(tables.root, x) if harmonium else x) + tables.bias[:, None]


def record_alpha(tables: RelaxedTables, u: Array, log_z: family.LogZ) -> dict[str, Array]:
    """alpha: (N, C), of which all estimators of log Z are made or judged; nothing where there is none."""
    has_log_z = log_z != "none" and tables.bias.shape[0] <= MAX_VARIABLES
    if not has_log_z:
        return {}
    return {"alpha": u - tables.bias[:, None]}

"""What a long run keeps of the draws that log Z is made of: how each compares with a Gaussian that is fitted early on.

α has a number for each variable and chain; the bridge needs two of each look at a chain, once q is there. So its error
falls for as long as a run goes on, at memory that hardly grows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spinbench.mathematics.relaxation.cross_fits import CrossFit
from spinbench.mathematics.relaxation.density import FloatArray, Relaxation
from spinbench.mathematics.relaxation.estimators import LogZEstimates, bridge

# Draws of all chains that q is fitted to; with more, its overlap with p hardly grows.
FIT_DRAWS = 4096
# Largest number of values of α that are stored before the fit: 8 MB.
MAX_FIT_NUMBERS = 2**20
# Smallest number of draws (if the run has as many samples) and of looks, which are grouped into batches.
MIN_DRAWS, MIN_LOOKS = 1024, 16
# Looks that are compared at once: one matrix-matrix product is faster than many matrix-vector products.
BLOCK_LOOKS = 64


@dataclass(frozen=True)
class GaussianDigest:
    """Looks at α become looks at forward and backward (C,), see `CrossFit.compare`.

    Attributes:
        relaxation: of the model.
        min_looks: of a run that has so many samples.
        look_steps: cost in steps of a comparison.
        fits: whether there is to be a fit; else looks stay as they are.
        fit: None as long as there are too few looks.
    """

    relaxation: Relaxation
    min_looks: int
    look_steps: float
    fits: bool
    fit: CrossFit | None = None

    def digest(self, looks: list[dict[str, FloatArray]]) -> GaussianDigest:
        """With a fit once there are draws enough for one; then looks are replaced a block at a time."""
        if not self.fits:
            return self
        if self.fit is None:
            alpha = looks[0]["alpha"]
            size = max(min(FIT_DRAWS // alpha.shape[1], MAX_FIT_NUMBERS // alpha.size), self.min_looks)
            if len(looks) < size:
                return self
            fit = CrossFit.fit(self.relaxation, _stack_alpha(looks[:size]))
            return replace(self, fit=fit).digest(looks)
        first = _first_raw(looks)
        for begin in range(first, len(looks) - BLOCK_LOOKS + 1, BLOCK_LOOKS):
            block = slice(begin, begin + BLOCK_LOOKS)
            looks[block] = self._compare(self.fit, looks[block])
        return self

    def log_z(self, looks: list[dict[str, FloatArray]], memory: float) -> LogZEstimates:
        """From all looks of a run, those that are not yet compared included; `memory` as of `estimators.gaussian`."""
        assert self.fit is not None
        first = _first_raw(looks)
        compared = looks[:first] + (self._compare(self.fit, looks[first:]) if first < len(looks) else [])
        forward, backward = (np.array([look[name] for look in compared]) for name in ("forward", "backward"))
        return bridge(forward, backward, self.relaxation.model.log_constant, memory)

    def _compare(self, fit: CrossFit, looks: list[dict[str, FloatArray]]) -> list[dict[str, FloatArray]]:
        forward, backward = fit.compare(_stack_alpha(looks))
        return [{"forward": ahead, "backward": back} for ahead, back in zip(forward, backward, strict=True)]


def _stack_alpha(looks: list[dict[str, FloatArray]]) -> FloatArray:
    """(L, N, C)."""
    return np.stack([look["alpha"] for look in looks])


def _first_raw(looks: list[dict[str, FloatArray]]) -> int:
    """The place of the first look that is not yet compared; all before it are."""
    place = len(looks)
    while place and "alpha" in looks[place - 1]:
        place -= 1
    return place

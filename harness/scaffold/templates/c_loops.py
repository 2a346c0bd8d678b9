"""The loops of the kernel in C, compiled on first use by the compiler that CC names, or `cc`."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from spinbench.errors import UnsupportedError

SOURCE = r"""
#include <math.h>
#include <stdint.h>

/* splitmix64: the next number of a stream, well mixed */
static uint64_t mixed(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

/* Advances the states s by so many steps, of which `step` is the first; adds p(s_i = 1 | rest) to p. */
void sweep(int64_t variables, int64_t chains, const double *biases, const int64_t *first, const int64_t *neighbours,
           const double *weights, uint64_t seed, int64_t step, int64_t steps, int8_t *s, double *p)
{
    for (int64_t t = step; t < step + steps; t++)
        for (int64_t i = 0; i < variables; i++) {
            uint64_t stream = mixed(mixed(mixed(seed) ^ (uint64_t)t) ^ (uint64_t)i);
            for (int64_t c = 0; c < chains; c++) {
                double field = biases[i];
                for (int64_t e = first[i]; e < first[i + 1]; e++)
                    field += weights[e] * s[neighbours[e] * chains + c];
                double one = 1 / (1 + exp(-field));
                double u = (mixed(stream ^ (uint64_t)c) >> 11) * 0x1p-53; /* [0, 1), without the 1 */
                s[i * chains + c] = u < one;
                p[i * chains + c] += one;
            }
        }
}
"""
INTEGERS, REALS, STATES = (np.ctypeslib.ndpointer(dtype, flags="C") for dtype in (np.int64, np.float64, np.int8))
NUMBER = ctypes.c_int64
ARGUMENTS = (NUMBER, NUMBER, REALS, INTEGERS, INTEGERS, REALS, ctypes.c_uint64, NUMBER, NUMBER, STATES, REALS)


@cache
def load_sweep() -> Callable[..., None]:
    """The compiled function.

    Raises:
        UnsupportedError: there is no compiler.
    """
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler) is None:
        why = f"needs a C compiler: {compiler} is not found; install it, or name another one in CC"
        raise UnsupportedError(f"method mine {why}")
    with TemporaryDirectory() as folder:
        library = Path(folder) / "loops.so"
        options = ["-O3", "-std=c99", "-shared", "-fPIC"]
        subprocess.run([compiler, *options, "-x", "c", "-", "-o", library, "-lm"], input=SOURCE, text=True, check=True)
        sweep = ctypes.CDLL(str(library)).sweep  # stays loaded without its file
    sweep.argtypes, sweep.restype = ARGUMENTS, None
    return sweep

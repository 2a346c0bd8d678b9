"""A small vector language for Numba: explicit vectors, raw addresses, elementary functions and random numbers.

It exists because LLVM does not vectorise the kernels' inner loops dependably, and because Numba's arrays cost what such
loops cannot pay: an atomic count of references whenever one is passed on, and a test of every index for being negative.
Everything below is for compiled code, unless it says that it is for Python. Kernels import its names from here.

**A vector** is a value like a number: `Vector(element, lanes)`, of 512 bits unless something else is asked for (16
lanes of 32 bits, 8 of 64, 32 of 16), or a mask of booleans. Operators, comparisons (which give masks), `choose` and the
functions take vectors; a number beside a vector is spread over its lanes. LLVM splits vectors that are wider than the
machine's registers, so that the same code runs everywhere. What it computes does not depend on the machine but for
rounding: multiplications and additions are fused where the machine can.

| module | what it holds |
|---|---|
| `vectors` | the type of a vector, operators, `choose`, `spread`, `count_up`, sums over lanes; making intrinsics |
| `memory` | addresses, loads and stores, gathers, look-ups, prefetching; arrays on cache lines (Python) |
| `vector_sums` | conversions, and sums of products in registers, for products with matrices |
| `functions` | `exp`, `log`, `log1p`, `sigmoid`, `softplus`, `sincos_turns`, of numbers and vectors |
| `formulas` | functions that are written out where they are called, without Numba's passes |
| `arrays` | arrays that a kernel makes; rows of arrays |
| `random`, `random_fills` | SplitMix64 streams addressed by a counter, and arrays of numbers from them |
| `checks` | the code that checks promises; `numba.machine_code.CHECKED` says whether it does |

**Addresses.** `address(array, i)` is a pointer to element i of a contiguous array, counted from its begin;
`pointers(tuple)` a named tuple with pointers to the first elements of its arrays in their place;
`offset_pointer(pointer, i)` goes on by i elements.
Indices are integers, signed or not, in elements from the pointer on. The elements are numbers; a pointer knows their
type.

| accessor | reads or writes | type |
|---|---|---|
| `load(p, i)` | an element | that of the array |
| `load_vector(p, i)` | 512 bits from element i on | that of the array |
| `load_lanes(p, i, lanes)` | as many elements as the tuple `lanes` has | that of the array |
| `load_row(a, i)`, `store_row(a, i, x)` | row i of an array of 512 bits a row; of one axis from element i on | its |
| `store(p, i, x)` | an element, or as many as the vector x has lanes | a vector's must be that of the array |
| `gather(p, v)` | the elements at the numbers v | v of 32 bits, below 2^31 |
| `gather_indexed(p, places, i)` | 512 bits of elements at the numbers from element i of `places` on | places uint32 |
| `look_up(p, i, v)` | elements i + v; 32 elements from i on are read | uint16, v below 32 |
| `add_rows`, `add_panel` | elements into sums | one for all |
| `store_sums(p, i, stride, sums, across)` | sums, in vectors | that of the array |
| `prefetch(p, i)` | nothing; asks for a cache line, and may ask for any | any |

No vector need begin on a multiple of its size: alignment is that of an element. One that crosses a cache line takes two
accesses, so that buffers begin on a line (`zeros_aligned`, `zero_array`, `empty_array`).

**What raw addresses ask of the caller.** A mistake is silent: it reads or overwrites what is not meant.

1. *Lifetime.* An array outlives its addresses. Arrays that Python passes do. Numba frees one that a kernel makes after
   its last use and does not see that an address is used: `keep(array, …)` at the function's end is such a use.
   Addresses are never returned from where the array was made.
2. *Bounds.* Accesses stay in the array whose address was taken; of a view, in the view. The exception are arrays with a
   margin, `zeros_aligned(shape, real, margin)`, and views of them: addresses may reach the whole block.
3. *Alignment.* Arrays begin at a multiple of their elements' size, as NumPy's do unless they are cut from bytes.
4. *Type and contiguity.* Elements are of the pointer's own type, and follow each other. Numba refuses to compile
   anything else.

**The debug mode.** With SPINBENCH_SIMD_CHECKS=1 in the environment, promises 1 to 3 are checked at every access, before
memory is touched; IndexError names the broken one and the function's symbol. Numba checks ordinary indices, too.
Machine code of this mode has a folder of its own. Without the variable, what is compiled has no trace of it. What to
know of it: memory that kernels allocate is not given back, and sums that LLVM would vectorise are rounded in another
order.

**Tests** are in `tests/backends/numba/simd`, a file for each part, against NumPy and published figures; `test_promises`
has kernels that break each promise, and `test_kernels_keep_promises` runs the kernels of all methods in the debug mode.

**Machines** it has run on: AMD EPYC of the Zen 5 generation and Intel Xeon of the Sapphire Rapids class, both with
AVX-512 (see docs/benchmarks.md). Code for processors with AVX2 at most (`NUMBA_CPU_NAME=haswell`) and with SSE2 alone
(`x86-64`) has run on the first of them: `test_feature_sets` does so with the tests of vectors, look-ups and gathers. On
nothing but x86 has anything run.
"""

from __future__ import annotations

from spinbench.backends.numba.simd.arrays import copy_into, empty_array, load_row, store_row, zero_array
from spinbench.backends.numba.simd.functions import (
    HALF,
    ONE,
    ZERO,
    constant,
    exp,
    larger,
    log,
    log1p,
    magnitude,
    sigmoid,
    sincos_turns,
    smaller,
    softplus,
)
from spinbench.backends.numba.simd.memory import (
    LINE,
    Address,
    Array,
    Real,
    address,
    empty_aligned,
    gather,
    gather_indexed,
    keep,
    load,
    load_lanes,
    load_vector,
    look_up,
    offset_pointer,
    pointers,
    prefetch,
    read,
    store,
    zeros_aligned,
)
from spinbench.backends.numba.simd.random import (
    GOLDEN_GAMMA,
    INVERSE_SCALE,
    SCALE,
    ULP,
    below,
    chain_keys,
    fill_rows,
    hash64,
    lane_numbers,
    mix64,
    row_numbers,
    uniform,
)
from spinbench.backends.numba.simd.random_fills import fill_normal, fill_uniform
from spinbench.backends.numba.simd.vector_sums import (
    add_panel,
    add_rows,
    convert,
    in_lanes,
    quarters,
    store_sums,
    zero_sums,
)
from spinbench.backends.numba.simd.vectors import (
    BITS,
    any_lane,
    by_types,
    choose,
    count_up,
    intrinsic_of,
    spread,
    spread_over,
    sum_of_lanes,
    total,
    wide,
)

__all__ = [
    "BITS",
    "GOLDEN_GAMMA",
    "HALF",
    "INVERSE_SCALE",
    "LINE",
    "ONE",
    "SCALE",
    "ULP",
    "ZERO",
    "Address",
    "Array",
    "Real",
    "add_panel",
    "add_rows",
    "address",
    "any_lane",
    "below",
    "by_types",
    "chain_keys",
    "choose",
    "constant",
    "convert",
    "copy_into",
    "count_up",
    "empty_aligned",
    "empty_array",
    "exp",
    "fill_normal",
    "fill_rows",
    "fill_uniform",
    "gather",
    "gather_indexed",
    "hash64",
    "in_lanes",
    "intrinsic_of",
    "keep",
    "lane_numbers",
    "larger",
    "load",
    "load_lanes",
    "load_row",
    "load_vector",
    "log",
    "log1p",
    "look_up",
    "magnitude",
    "mix64",
    "offset_pointer",
    "pointers",
    "prefetch",
    "quarters",
    "read",
    "row_numbers",
    "sigmoid",
    "sincos_turns",
    "smaller",
    "softplus",
    "spread",
    "spread_over",
    "store",
    "store_row",
    "store_sums",
    "sum_of_lanes",
    "total",
    "uniform",
    "wide",
    "zero_array",
    "zero_sums",
    "zeros_aligned",
]

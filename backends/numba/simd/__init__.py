"""A small vector language for Numba: explicit vectors, raw addresses, elementary functions and random numbers.

It exists because LLVM does not vectorise the kernels' inner loops dependably, and because Numba's arrays cost what such
loops cannot pay: an atomic count of references whenever one is passed on, a test of every index for being negative, no
word to LLVM about which arrays are apart. Everything below is for compiled code, unless it says that it is for Python.

**A vector** is a value like a number: `Vector(element, lanes)`, of 512 bits unless something else is asked for (16
lanes of 32 bits, 8 of 64, 32 of 16), or a mask of booleans. Operators, comparisons (which give masks), `choose` and the
functions take vectors; a number beside a vector is spread over its lanes. LLVM splits vectors that are wider than the
machine's registers, so that the same code runs everywhere. What it computes does not depend on the machine but for
rounding: multiplications and additions are fused where the machine can.

| module | what it holds |
|---|---|
| `vectors` | operators, `choose`, `spread`, `count_up`, sums over lanes, conversions |
| `memory` | addresses, and loads and stores of single elements |
| `vector_memory` | the same for vectors; gathers, look-ups, prefetching; arrays on cache lines (Python) |
| `vector_sums` | sums of products in registers, for products with matrices |
| `functions` | `exp`, `log`, `log1p`, `sigmoid`, `softplus`, `sincos_turns`, of numbers and vectors |
| `formulas` | functions that are written out where they are called, without Numba's passes |
| `arrays` | arrays that a kernel makes |
| `random`, `random_fills` | SplitMix64 streams addressed by a counter, and arrays of numbers from them |
| `vector_type` | the type of a vector, for those who generate code |
| `checks`, `ledger` | the code that checks promises, what it knows; `numba.debug_mode` says whether it does |

**Addresses.** `address(array, i)` is a pointer to element i of a contiguous array, counted from its begin;
`line_address(array)` to the first element on a cache line; `moved(pointer, i)` goes on by i elements. Indices are
integers, signed or not, in elements from the pointer on. KIND is `table`, `state`, `field`, `uniform` or `sum`: what an
array is to a function, see below. The elements are numbers; a pointer knows their type.

| accessor | reads or writes | type |
|---|---|---|
| `load_KIND(p, i)`, `store_KIND(p, i, x)` | an element; tables are not stored to | that of the array |
| `load_KIND_vector(p, i)` | 512 bits from element i on | that of the array |
| `store_KIND_vector(p, i, v)` | as many elements as v has lanes | v's must be that of the array |
| `load_KIND_words(p, i, lanes)` | as many elements as the tuple `lanes` has; tables, states, sums | that of the array |
| `gather_states(p, places, i)` | 512 bits of states at the numbers in a table, from its element i on | places uint32 |
| `gather_table(p, v)` | a table's elements at the numbers v | v of 32 bits, below 2^31 |
| `look_up(p, i, v)` | a table's elements i + v; 32 elements from i on are read | uint16, v below 32 |
| `add_rows`, `add_panel` | a table's elements into sums (and states, for a panel) | one for all |
| `store_sums(p, i, stride, sums, across)` | sums, in vectors | that of the array |
| `prefetch(p, i)` | nothing; asks for a cache line, and may ask for any | any |

No vector need begin on a multiple of its size: alignment is that of an element. One that crosses a cache line takes two
accesses, so that buffers begin on a line (`aligned_zeros`, `line_address`).

**What raw addresses ask of the caller.** A mistake is silent: it reads or overwrites what is not meant.

1. *Lifetime.* An array outlives its addresses. Arrays that Python passes do. Numba frees one that a kernel makes after
   its last use and does not see that an address is used: `keep(array)` at the function's end is such a use. Addresses
   are never returned from where the array was made.
2. *Bounds.* Accesses stay in the array whose address was taken; of a view, in the view. The exception are arrays with a
   margin, `aligned_zeros(shape, real, margin)`, and views of them: addresses may reach the whole block.
3. *Alignment.* Arrays begin at a multiple of their elements' size, as NumPy's do unless they are cut from bytes.
4. *Kinds.* Within a call of a function, as it is written, memory that is stored to is accessed as one kind alone. LLVM
   is told so and moves accesses of different kinds past each other. What a function calls counts for itself, each call
   in a loop, too, also where LLVM inlines it (`forceinline`), so that an array may be a sum of one function and a state
   of the next; what Numba writes out in a function (`inline="always"`) is a part of it.
5. *Type and contiguity.* Elements are of the pointer's own type, and follow each other. Numba refuses to compile
   anything else.

**The debug mode.** With SPINBENCH_SIMD_CHECKS=1 in the environment, promises 1 to 4 are checked at every access, before
memory is touched; IndexError names the broken one, the access and the function. Numba checks ordinary indices, too.
Machine code of this mode has a folder of its own. Without the variable, what is compiled has no trace of it. What to
know of it: memory that kernels allocate is not given back, one thread at a time is in kernels, the kinds of 3 MB of
memory are remembered, and sums that LLVM would vectorise are rounded in another order.

**Tests** are in `tests/backends/numba/simd`, a file for each part, against NumPy and published figures; `test_promises`
has kernels that break each promise, and `test_kernels_keep_promises` runs the kernels of all methods in the debug mode.

**Machines** it has run on: AMD EPYC of the Zen 5 generation and Intel Xeon of the Sapphire Rapids class, both with
AVX-512 (see docs/benchmarks.md). Code for processors with AVX2 at most (`NUMBA_CPU_NAME=haswell`) and with SSE2 alone
(`x86-64`) has run on the first of them: `test_feature_sets` does so with the tests of vectors, look-ups and gathers. On
nothing but x86 has anything run.
"""

"""Exact answers in compiled code.

    kernel         exact.numba, which says which solver has which name; frontier elimination, of binary pairs on an open
                   R x C grid, C <= R, C = 21 in a gibibyte: always
        grid_kernels       over the rows and their columns, down and up
    tree           bucket elimination, of any discrete model: where NumPy would take more than a second, and of more
                   than 15 000 variables; samples
        buckets            what each bucket multiplies, and the room it takes; how all is compiled; messages around 1
        bucket_kernels     one bucket at work
        tree_kernels       messages, and marginals on the way back

That is when `spinbench.exact` runs them; the backend numba runs them wherever they apply. All sum in plain float64, and
notice where that would lose something: `grid` then hands over to `tree`, and that to bucket elimination in NumPy.
Closed forms, two-layer and small models are NumPy's alone (`spinbench.reference`).
"""

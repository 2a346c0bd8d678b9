"""Other libraries, each of which stands in the table as a backend: one module a library, with its kernels.

    library       what a backend of another library is; models in the ±1 form, or as one table a scope; exact solvers
    chains        samplers: the library moves states, all else is found on the host, as for our own
    trajectories  Hamiltonian Monte Carlo of libraries on JAX
    program       exact solvers that are programs, by files
    programs      those programs, one a module

A library is used in the way that its own documentation says is fastest; what it cannot do, its kernel's notes say.
"""

"""Block Gibbs and DHMC on the Gaussian relaxation in compiled code, on tiles of chains.

    block_gibbs     block_gibbs.numba: s given x, then x given s; what both do on the host before their first step
    dhmc            dhmc.numba: trajectories, with dual averaging of their step in burn-in
        trajectories   samples: jitter, a trajectory, its Metropolis test
        integrators    trajectories: forms identity and harmonium by leapfrog steps, for unit mass; forms
                       preconditioned and sparse by rotations, for mass Q⁻¹
    factors         what is known of Q, by form: roots, Q and a root, or Q⁻¹, with products with Q⁻¹ on lattices
    matrices        products with matrices: whole, by diagonals, and sparse
    units           p(s|x): means, normaliser, draws; random numbers of a tile
    tiles           where chains lie: one in vectors of its variables, many as the lanes of vectors

A tile holds one chain up to 8 chains in all (4 in float64), and as many as a vector has lanes above. What each form is
worth: docs/explanations/relaxed-forms.md.
"""

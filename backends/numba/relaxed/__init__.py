"""Block Gibbs and DHMC on the Gaussian relaxation in compiled code, on tiles of chains.

    block_gibbs    block_gibbs.numba: s given x, then x given s
    dhmc           dhmc.numba: trajectories, with dual averaging of their step in burn-in
        leapfrog       forms identity and harmonium: unit mass
        rotation       forms preconditioned and sparse: mass Q⁻¹
        point          where a trajectory stands, and the move there if it is accepted
        step_size      dual averaging
    gram           draws of N(Qs, Q), for block Gibbs and for rotations:
        products       whole matrices: dense models, and the harmonium on all
        banded         by diagonals: lattices, and form sparse with a band of at most 32
        edges          along the edges: form sparse without such a band
    elimination    products with Q⁻¹ for leapfrog on lattices; on other models `products`
    units          p(s|x): means, normaliser, draws; random numbers of a tile
    tiles          where chains lie: one in vectors of its variables, many as the lanes of vectors

A tile holds one chain up to 8 chains in all (4 in float64), and as many as a vector has lanes above. What each form is
worth: docs/explanations/relaxed-forms.md.
"""

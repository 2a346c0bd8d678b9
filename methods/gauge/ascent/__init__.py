"""The maximisations behind gauged bounds, over angles (G-BP), and angles and the logits of q (G-MF), of one model.

From the top: `point_mass` and `field_gauge` are the continuations of G-BP and of G-MF, weights of the barrier falling
from one maximisation to the next, and `mean_field` is the coordinate ascent from which G-MF also starts. `newton` takes
the steps of one maximisation; `objectives` has the values that it raises and puts Hessians together from `derivatives`,
those of each node in closed form; `linear` solves for the direction of a step. Nothing here is a bound yet.
"""

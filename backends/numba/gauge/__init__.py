"""The gauged methods and mean field on Forney models in compiled code.

A run passes through these files: `kernel` is the searches of `spinbench.methods.gauge` with the ascents of `solver`,
one object an ascent; `network` lays a model out for them, and `elimination` its Hessians, as blocks of an edge by an
edge in an order of little fill; `newton` takes a step, by the rules of `spinbench.methods.gauge.ascent.newton`, with
what `gauged` (tables, values), `derivatives` and `cholesky` find. `fields` is the coordinate ascent of mean field.

Bounds are taken, and verified, by the same code as those of the kernel on NumPy.
"""

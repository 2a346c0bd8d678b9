"""Gibbs sampling of any factor graph in compiled code, over flat factor tables: see `sweeps`, and `kernel`."""

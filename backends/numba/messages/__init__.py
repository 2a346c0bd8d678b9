"""Belief propagation, mean field and tree-reweighted sum-product in compiled code."""

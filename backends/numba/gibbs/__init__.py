"""Gibbs sampling in compiled code: one kernel, whose forms suit different models and numbers of chains."""

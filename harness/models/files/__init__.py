"""Readers and writers of model files, one module a format; `spinbench.models.loading` is their door."""

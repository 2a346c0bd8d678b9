"""Passes over mini-buckets, and draws from them, in compiled loops."""

"""Commits of the past, each built into an environment of its own and measured there."""

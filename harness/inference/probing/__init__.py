"""Probes of a model that no run of it makes: where they stay, and what such a place weighs."""

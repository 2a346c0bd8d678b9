"""Caches and records of these tests stay in the run's temporary folder; a plugin that misbehaves on request."""

from surroundings import faulty, own_surroundings, small_disk

__all__ = ["faulty", "own_surroundings", "small_disk"]

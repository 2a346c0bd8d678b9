"""Caches and records of these tests stay in the run's temporary folder; a plugin that misbehaves; a browser."""

from headless_browser import browser
from surroundings import faulty, own_surroundings, small_disk

__all__ = ["browser", "faulty", "own_surroundings", "small_disk"]

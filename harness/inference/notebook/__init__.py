"""Answers as a notebook shows them, and how far they are."""

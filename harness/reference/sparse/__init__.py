"""Elimination over what hard zeros leave possible."""

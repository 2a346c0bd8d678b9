"""Blocks of bounded width in compiled code."""

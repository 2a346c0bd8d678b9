"""Bounds and draws from mini-buckets: eliminations that are cut where their tables would be too large."""

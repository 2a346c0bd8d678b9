"""The files of a new package: modules that work as they stand, and texts with names to be filled in."""

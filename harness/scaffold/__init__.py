"""`spinbench init`: the package that a plugin begins with."""

"""Programs that stand in the table as backends: one module a program, with its kernels (see `program` above)."""

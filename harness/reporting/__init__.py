"""Reports of sweeps that people look at: one HTML page, with every picture and table beside it as a file."""

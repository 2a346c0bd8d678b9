"""Two sets of runs compared: what is tested, by which noise, and what is said of it."""

"""Many cells: from a command line through Hydra to jobs, here or under a launcher."""

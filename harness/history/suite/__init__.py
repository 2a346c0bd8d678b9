"""asv's benchmark_dir: one module a family of conf/axes. asv imports this folder as the top-level package `suite`."""

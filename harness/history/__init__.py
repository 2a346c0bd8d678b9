"""Records over commits: asv's history, what is tracked in it, and whether a commit made anything worse."""

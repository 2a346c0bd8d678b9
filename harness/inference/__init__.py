"""One run of one method on one backend: from a model to a `Result`."""

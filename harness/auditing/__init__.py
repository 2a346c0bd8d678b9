"""Whether states from anybody's sampler are draws of a model's law."""

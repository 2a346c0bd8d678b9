"""The heaviest state of a model, exactly."""

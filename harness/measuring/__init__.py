"""One cell measured in a process of its own: from a configuration to a record."""

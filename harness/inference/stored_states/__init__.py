"""States that a run keeps of its chains: how they are recorded and stored, who takes them, and which is the best."""

"""States that a run keeps of its chains, and the forms in which other libraries take them."""

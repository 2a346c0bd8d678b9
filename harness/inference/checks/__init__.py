"""Whether an estimate is one, and what it may have missed: doubts that keep it from being believed."""

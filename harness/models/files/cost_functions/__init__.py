"""toulbar2's cost function networks: numbers alone (`wcsp`), or names (`cfn`)."""

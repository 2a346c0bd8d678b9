"""What everything stands on: whole files or none, folders for what can be made again, git, and checked parameters."""

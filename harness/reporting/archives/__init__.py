"""Archives of boards: found, fetched, compared with and checked."""

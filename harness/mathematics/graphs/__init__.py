"""Orders in which a graph is updated, and the tables of neighbours, messages and factors that updates read."""

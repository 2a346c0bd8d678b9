"""The experiments of the two papers: how their figures and tables are made from records."""

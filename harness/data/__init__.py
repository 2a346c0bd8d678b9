"""Shipped models, answers and their licences; see NOTICE and `spinbench.models.catalogue`."""

"""Weighted model counting: log Z as the count of a propositional formula, for models that hard zeros decide."""

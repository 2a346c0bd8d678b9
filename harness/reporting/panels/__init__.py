"""Single pictures of a report: what one model's records, or one setting, say."""

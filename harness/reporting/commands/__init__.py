"""What commands show that are of one model, and keep no records."""

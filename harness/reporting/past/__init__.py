"""What is said of commits one after another."""

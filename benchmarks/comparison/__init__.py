"""The same work through spinbench and through other people's libraries, timed in turns in one process."""

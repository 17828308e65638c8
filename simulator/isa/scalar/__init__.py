"""Instructions of one thread."""

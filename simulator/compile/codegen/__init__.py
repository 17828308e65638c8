"""IR to Python functions."""

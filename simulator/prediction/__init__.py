"""How fast a launch would be on a named GPU, and what limits it."""

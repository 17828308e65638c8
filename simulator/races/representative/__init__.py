"""Representative block: one block is checked for all that behave identically."""

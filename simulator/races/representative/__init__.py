"""One block checked for all that behave identically."""

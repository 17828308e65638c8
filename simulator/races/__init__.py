"""Happens-before: which accesses nothing puts in order."""

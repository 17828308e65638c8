"""Observers of a launch: counters, checks and the trace."""

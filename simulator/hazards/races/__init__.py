"""Hazards made from the race log."""

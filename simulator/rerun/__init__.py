"""Decides whether a launch has to run again, and why."""

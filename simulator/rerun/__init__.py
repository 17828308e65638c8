"""Repeated execution of a launch: escalation, other orders, root causes."""

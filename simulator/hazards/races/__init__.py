"""Hazards made of races."""

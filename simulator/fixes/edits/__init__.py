"""Edits that may fix a hazard, one module for each kind."""

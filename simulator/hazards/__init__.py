"""Hazards: kinds, records, and the text of reports."""

"""Hazards: their records and what they say."""

"""Happens-before of device code: vector clocks, barriers, fences, flags and locks."""

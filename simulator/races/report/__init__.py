"""Collection of races: groups, pairs of threads, program order."""

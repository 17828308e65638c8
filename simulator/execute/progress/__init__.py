"""Livelock, and compaction of the lanes that are still in a loop."""

"""Progress: livelock detection, and lane compaction in divergent loops."""

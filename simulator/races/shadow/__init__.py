"""Shadow memory: the latest accesses of each location."""

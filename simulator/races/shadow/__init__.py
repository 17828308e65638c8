"""Shadow memory: the accesses of each location."""

"""The lockstep machine: which lanes run which block, and who waits for whom."""

"""Who watches a launch: counters and the trace."""

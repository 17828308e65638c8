"""Parallel execution of a launch: its blocks are sharded over processes."""

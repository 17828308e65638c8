"""``python -m benchmarks``: how fast the simulator is, beside what NumPy itself allows."""

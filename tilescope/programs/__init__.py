"""Whole CUDA programs, unchanged: their calls of the runtime are answered by the simulator."""

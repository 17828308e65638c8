"""CUDA's libraries: calls that are computed on the host with NumPy, not simulated."""

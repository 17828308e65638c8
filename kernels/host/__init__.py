"""Launches in the host code of a CUDA source."""

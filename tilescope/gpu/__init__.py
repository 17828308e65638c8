"""Launches on a GPU, counters of Nsight Compute, predictions."""

"""GPU commands: launches, Nsight Compute counters, predictions."""

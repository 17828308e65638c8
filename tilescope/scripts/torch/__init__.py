"""PyTorch on the simulator."""

"""Storage: arrays, layout of variables, device heap, and module state."""

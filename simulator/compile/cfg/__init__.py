"""Basic blocks, control flow, convergence points and the call graph."""

"""Control flow: basic blocks, dominance, convergence points and the call graph."""

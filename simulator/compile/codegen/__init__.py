"""Code generation: IR to Python functions."""

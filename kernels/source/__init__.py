"""CUDA C++ text: syntax, names, types and edits."""

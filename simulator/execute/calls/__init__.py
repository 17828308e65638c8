"""Terminators of basic blocks, calls, system calls, special registers."""

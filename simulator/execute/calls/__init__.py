"""Terminators of basic blocks, calls, system functions and special registers."""

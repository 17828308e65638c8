"""The library that a program loads in place of ``libcudart``, and its compilation."""

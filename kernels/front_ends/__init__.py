"""Kernels of other languages than CUDA C++: a module each, which needs its front end."""

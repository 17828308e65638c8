"""The library's kernels, a folder for each family, and the catalogue of them."""

from .catalog import Agreement, Expected, Launch, LibraryKernel, Size, get, names

__all__ = ["Agreement", "Expected", "Launch", "LibraryKernel", "Size", "get", "names"]

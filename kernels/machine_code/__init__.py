"""Cubins that NVRTC or ptxas make, without a GPU: resources, SASS, line tables."""

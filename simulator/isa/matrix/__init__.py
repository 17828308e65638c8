"""Tensor-core instructions."""

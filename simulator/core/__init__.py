"""Core types: batch geometry, clusters, compact lanes."""

"""Shapes, clusters and subsets of lanes that everything else is written in."""

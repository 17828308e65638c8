"""Passes from IR to IR: counting, tracing, definedness, predication, fusion, grouping."""

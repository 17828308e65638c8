"""Graphs of the runtime API: capture, nodes, executable graphs."""

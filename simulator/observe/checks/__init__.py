"""Checks besides races: uninitialised values, read-only path, ``wgmma`` registers."""

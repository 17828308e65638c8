"""Synchronisation: barriers, warp-synchronous instructions and convergence."""

"""Barriers, warp-synchronous points and convergence."""

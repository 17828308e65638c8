"""Sweeps: every size with every tile, GPU, schedule and seed, on any executor."""

from .cells import Cell, grid
from .sweeping import sweep

__all__ = ["Cell", "grid", "sweep"]

"""Control flow and warp instructions."""

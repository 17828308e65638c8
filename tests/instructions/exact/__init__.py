"""Each instruction over edge values and random bits, varied and uniform, against exact models."""

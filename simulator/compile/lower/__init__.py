"""PTX instructions to IR."""

"""Lowering: PTX instructions to IR."""

"""Bit-exact arithmetic without PTX."""

"""Python values to the bytes of kernel parameters."""

"""Native forms as NumPy's universal functions, which stand in for slower ones of instructions."""

"""Every row of the instruction table against models in Python's exact integers."""

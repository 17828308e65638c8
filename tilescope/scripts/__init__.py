"""Running a Python script of a GPU's user: the launches of its front ends go to the simulator.

A module a front end; each patches it as it is imported, and everything is undone at the end.
"""

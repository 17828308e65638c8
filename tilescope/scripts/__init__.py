"""Execution of Python scripts for GPUs: launches of their front ends go to the simulator.

Each front end has a module that patches it on import; all patches are undone at the end.
"""

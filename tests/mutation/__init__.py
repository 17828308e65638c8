"""Mutations of the simulator itself: is there a test for every line that matters?"""

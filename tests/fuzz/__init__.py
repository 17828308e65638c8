"""Nets: random programs and damage, held against something that shares nothing with the machine.

A net is a module of this package with ``run(seconds, seed, count) -> Report``.
"""

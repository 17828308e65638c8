"""Syntax of loads, stores, copies, mbarriers and images."""

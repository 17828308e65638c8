"""Meanings of instructions as LLVM IR, for one lane; the NumPy rows define them.

``tests/simulator/native/test_forms.py`` holds each to its row, bit for bit.
"""

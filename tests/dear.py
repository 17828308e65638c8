"""Tests of the second stage, by name: ``dear.txt``."""

from pathlib import Path

import pytest

DEAR = frozenset(
    line for line in Path(__file__).with_name("dear.txt").read_text().splitlines() if line[0] != "#"
)
LOST = pytest.StashKey[list[str]]()
"""Of these, what no test of a file that was collected is called."""

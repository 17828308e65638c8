"""Where the files are that tests read."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
DEFECTS = TESTS / "defects"
GROUND_TRUTH = TESTS / "ground_truth"

"""Random mutants of one file, made by mutmut's operators, in the form of defects."""

import difflib
import random
from pathlib import Path

from tests.fuzz.bites.defects import Bite

ROOT = Path(__file__).parents[3]


def drawn(file: str, count: int, seed: int, tests: str) -> list[Bite]:
    """Draw mutants of a file's functions, for tests (as for pytest) to find.

    Args:
        file: Relative to the repository.
        count: At most so many.
        seed: The same one draws the same mutants.
        tests: Files of tests, separated by spaces.
    """
    from mutmut.mutation.file_mutation import create_mutations

    text = (ROOT / file).read_text()
    module, mutations, _, _ = create_mutations(file, text)
    possible = [m for m in mutations if m.contained_by_top_level_function]
    random.Random(seed).shuffle(possible)
    changed = [module.deep_replace(m.original_node, m.mutated_node).code for m in possible[:count]]
    return [Bite(_difference(text, new), tests, file, text, new) for new in changed]


def _difference(before: str, after: str) -> str:
    """The changed lines in one line, with their number in the file."""
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))
    return " ".join(" ".join(lines[2:]).split())

"""What keeps the house readable: short files, and types that say something."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("kernels", "simulator", "device", "tilescope", "benchmarks", "tests")
LINES = 500
"""Lines of a file."""
ANYS = 100


def test_files_are_short() -> None:
    texts = {path: path.read_text() for room in ROOMS for path in (ROOT / room).rglob("*.py")}
    assert len(texts) > 100
    for path, text in texts.items():
        lines = text.count("\n")
        assert lines <= LINES, (path, lines)


def test_any_is_rare_in_the_simulator() -> None:
    texts = [path.read_text() for path in (ROOT / "simulator").rglob("*.py")]
    assert 0 < sum(len(re.findall(r"\bAny\b", text)) for text in texts) <= ANYS

"""Files have one subject, folders show their structure, and types say something."""

import re
from collections import Counter

from tests.architecture.tree import PACKAGES, ROOT, folder, modules

LINES = 500
FILES = 16
"""Of a folder, without its ``__init__.py``."""
TABLES = ("tilescope.commands", "tilescope.text")
"""Folders that are tables: one file for each command, and one for what each command prints."""
ANYS = 102


def test_files_are_short() -> None:
    paths = [
        path for room in (*PACKAGES, "benchmarks", "tests") for path in (ROOT / room).rglob("*.py")
    ]
    lengths = {str(path.relative_to(ROOT)): path.read_text().count("\n") for path in paths}
    for path, lines in sorted(lengths.items(), key=lambda item: -item[1])[:10]:
        print(f"{lines} {path}")
    assert {path: lines for path, lines in lengths.items() if lines > LINES} == {}


def test_folders_are_small() -> None:
    files = Counter(folder(name) for name, (path, _) in modules().items() if path.stem[0] != "_")
    for place, count in files.most_common(10):
        print(f"{count} files in {place}")
    large = {place: count for place, count in files.items() if count > FILES}
    assert {place: count for place, count in large.items() if place not in TABLES} == {}


def test_any_is_rare_in_the_simulator() -> None:
    texts = [path.read_text() for path in (ROOT / "simulator").rglob("*.py")]
    assert 0 < sum(len(re.findall(r"\bAny\b", text)) for text in texts) <= ANYS

"""Modules that code in strings, docs and scripts imports exist."""

import re

from tests.architecture.tree import PACKAGES, ROOT, modules

IMPORTED = re.compile(rf"\b(?:from|import) ((?:{'|'.join(PACKAGES)})(?:\.\w+)+)")
TEXTS = ("tests/**/*.py", "benchmarks/**/*", "examples/**/*", "docs/*", "*.md", "*.toml", ".ci/run")


def test_imported_modules_exist() -> None:
    wrong = []
    for pattern in TEXTS:
        for path in sorted(ROOT.glob(pattern)):
            if path.suffix in (".py", ".md", ".toml", ".txt", "") and path.is_file():
                for found in IMPORTED.finditer(path.read_text(encoding="utf-8")):
                    if found[1] not in modules():
                        wrong.append((str(path.relative_to(ROOT)), found[1]))
    assert wrong == []

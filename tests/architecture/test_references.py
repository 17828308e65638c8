"""Modules that code in strings, docs and scripts imports exist, and what guides name in them."""

import re

from tests.architecture.tree import PACKAGES, ROOT, definitions, modules

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


def test_what_guides_name_in_a_file_is_defined_there() -> None:
    guides = ("docs/architecture.md", "docs/checks.md", "CONTRIBUTING.md")
    text = " ".join((ROOT / f).read_text() for f in guides)
    found = re.findall(r"((?:`\w+`(?: and )?)+) \(?(?:in )?`([\w/]+\.py)`", " ".join(text.split()))
    trees = {path.relative_to(ROOT).as_posix(): tree for path, tree in modules().values()}
    for names, file in found:
        tree = trees.get(file) or trees["simulator/" + file]
        assert set(re.findall(r"\w+", names)) - {"and"} <= set(definitions(tree)), (names, file)
    assert len(found) > 24

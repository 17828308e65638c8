"""The wheel and the source distribution have every file that they need."""

import tomllib

from tests.architecture.tree import PACKAGES, ROOT


def test_the_wheel_has_every_file_of_the_rooms() -> None:
    """Modules are found; whatever else stands beside them has to be named."""
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"][
        "package-data"
    ]
    named = {
        path
        for package, patterns in data.items()
        for pattern in patterns
        for path in (ROOT / package.replace(".", "/")).glob(pattern)
    }
    others = {
        path
        for room in PACKAGES
        for path in (ROOT / room).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert others
    assert others - named == set()


def test_the_sdist_has_what_its_readme_speaks_of() -> None:
    """The rooms are found as packages; tests with their helpers, docs and examples are named."""
    named = (ROOT / "MANIFEST.in").read_text().split()
    for room in ("tests", "docs", "examples", "benchmarks", ".ci", "CHANGELOG.md"):
        assert room in named
        assert (ROOT / room).exists()

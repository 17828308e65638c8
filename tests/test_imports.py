"""Imports run one way: between the rooms, and between the folders inside ``simulator/``.

Read from the syntax trees, so that an import inside a function counts as well. ``pytest -s``
shows the graph.
"""

import ast
import functools
import tomllib
from collections.abc import Collection, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("kernels", "simulator", "device", "tilescope")
INSIDE = (
    "clusters", "moves", "geometry", "picked", "gpus", "isa", "memory", "compile", "events",
    "execute", "analysis", "races", "hazards", "observe", "caches", "workers", "idle_reads",
    "consequences", "other_orders", "attempts", "run", "launch", "order", "results", "cures",
    "prediction",
)  # fmt: skip
WITHOUT_CIRCLES = ("kernels", "device", "tilescope", "simulator.cures", "simulator.isa")
"""Places without circles of imports, those for types alone included."""


@functools.cache
def modules() -> dict[str, tuple[Path, ast.Module]]:
    """Every module of the rooms, by its dotted name."""
    found = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = path, ast.parse(path.read_text())
    return found


@functools.cache
def imports(name: str, running: bool = False) -> tuple[str, ...]:
    """The modules of the rooms that a module imports; ``running``: not those for types alone."""
    return tuple(_imports(name, running))


def _imports(name: str, running: bool) -> Iterator[str]:
    path, tree = modules()[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    skipped = {
        id(inner)
        for node in (ast.walk(tree) if running else ())
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        targets: list[str] = []
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            inner = [f"{base}.{alias.name}" for alias in node.names]
            targets = [one if one in modules() else base for one in inner]
        yield from (target for target in targets if target in modules() and target != name)


def place(name: str) -> str:
    """A module's room; inside ``simulator/`` its folder, or itself."""
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] == "simulator" else parts[0]


@functools.cache
def graph() -> dict[str, dict[str, set[tuple[str, str]]]]:
    """Which place imports which, and the modules that do."""
    found: dict[str, dict[str, set[tuple[str, str]]]] = {}
    for name in modules():
        here = found.setdefault(place(name), {})
        for target in imports(name):
            if place(target) != place(name):
                here.setdefault(place(target), set()).add((name, target))
    return found


def level(at: str) -> int:
    """How high a place stands; ``simulator`` itself hands names out, on top of its folders."""
    room, _, folder = at.partition(".")
    inside = INSIDE.index(folder) if folder else len(INSIDE)
    return ROOMS.index(room) * 100 + inside


def test_rooms_and_folders_are_in_order() -> None:
    folders = {at.partition(".")[2] for at in graph() if at.startswith("simulator.")}
    assert folders == set(INSIDE)
    against = []
    for at in sorted(graph(), key=level):
        ways = graph()[at]
        print(f"{at}: {', '.join(sorted(ways, key=level)) or 'nothing'}")
        for to in ways:
            against += [pair for pair in ways[to] if level(to) > level(at)]
    assert against == []


def circles(names: Collection[str], running: bool) -> set[str]:
    """The circles of imports among some modules; ``running``: without those for types alone."""
    done: set[str] = set()
    found: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        if name in way:
            found.add(" -> ".join([*way[way.index(name) :], name]))
        elif name not in done:
            for target in imports(name, running):
                if target in names:
                    visit(target, (*way, name))
            done.add(name)

    for name in names:
        visit(name, ())
    return found


def test_no_circle() -> None:
    assert not circles(modules(), running=True)


def test_no_circle_of_types() -> None:
    assert not circles([name for name in modules() if place(name) in WITHOUT_CIRCLES], False)


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
        for room in ROOMS
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

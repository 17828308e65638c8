"""Imports run one way: between the packages, and between the folders of ``simulator``.

Read from the syntax trees: imports inside functions and for types alone count as well.
``pytest -s`` prints the graph.
"""

from collections import defaultdict

from .tree import PACKAGES, components, imports, modules, place

INSIDE = (
    "core", "gpus", "isa", "memory", "compile", "events", "execute", "analysis", "races",
    "hazards", "observe", "caches", "workers", "rerun", "run", "launch", "host_order",
    "build_results", "fixes", "prediction",
)  # fmt: skip
"""Folders and modules of ``simulator``; each may import those before it."""


def level(at: str) -> int:
    """Return the position of a place; ``simulator`` itself exports names, above its folders."""
    package, _, inside = at.partition(".")
    position = INSIDE.index(inside) if inside else len(INSIDE)
    return PACKAGES.index(package) * 100 + position


def test_packages_and_folders_import_downwards() -> None:
    graph = defaultdict[str, dict[str, set[tuple[str, str]]]](lambda: defaultdict(set))
    for name in modules():
        for target in imports(name):
            if place(target) != place(name):
                graph[place(name)][place(target)].add((name, target))
    inside = {place(name).partition(".")[2] for name in modules() if "simulator." in name}
    assert inside == set(INSIDE)
    upward = []
    for at in sorted(graph, key=level):
        print(f"{at}: {', '.join(sorted(graph[at], key=level)) or 'nothing'}")
        for to, pairs in graph[at].items():
            upward += sorted(pairs) if level(to) > level(at) else []
    assert upward == []


def test_no_cycle() -> None:
    assert components({name: imports(name) for name in modules()}) == []


UPWARD: dict[str, tuple[str, ...]] = {}
"""Folders inside a place that import each other both ways; this list only shrinks."""


def test_folders_inside_a_place_do_not_import_each_other() -> None:
    graph = defaultdict[str, set[str]](set)
    for name in modules():
        for target in imports(name):
            here, there = ".".join(name.split(".")[:3]), ".".join(target.split(".")[:3])
            if place(name) == place(target) and here != there:
                graph[here].add(there)
                graph[there] = graph[there]
    for component in components(graph):
        print("both ways:", *sorted(component))

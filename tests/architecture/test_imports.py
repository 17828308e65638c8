"""Imports run one way: between the packages, and between the folders of ``simulator``.

Read from the syntax trees: imports inside functions and for types alone count as well.
``pytest -s`` prints the graph.
"""

from collections import defaultdict

from tests.architecture.tree import PACKAGES, components, imports, modules, place

INSIDE = (
    "core", "gpus", "isa", "memory", "compile", "events", "execute", "analysis", "races",
    "hazards", "observe", "caches", "workers", "native", "rerun", "run", "launch", "host_order",
    "host_checks",
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


def test_folders_of_a_place_import_one_way() -> None:
    graph = defaultdict[str, set[str]](set)
    for name in modules():
        here = ".".join(name.split(".")[1:3])
        graph[here] |= {
            ".".join(target.split(".")[1:3])
            for target in imports(name)
            if name.startswith("simulator.") and place(target) == place(name)
        } - {here}
    assert components(graph) == []

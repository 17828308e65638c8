"""Mutants of an area of the simulator, made by mutmut's operators, and put into a live process."""

import difflib
import gc
import inspect
import itertools
import random
import types
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
AREAS = {
    "access": ("simulator/memory/access.py", "simulator/memory/memories.py"),
    "memory": ("simulator/memory/spaces.py",),
    "barriers": ("simulator/execute/barriers.py", "simulator/execute/divergence.py"),
    "races": (
        "simulator/races/detector.py",
        "simulator/races/shared_memory.py",
        "simulator/races/exact.py",
    ),
    "intervals": ("simulator/races/intervals.py",),
    "happens-before": ("simulator/races/happens_before.py",),
    "atomics": ("simulator/memory/atomics.py",),
    "liveness": ("simulator/compile/blocks.py", "simulator/isa/roles.py"),
    "codegen": (
        "simulator/compile/lower.py",
        "simulator/compile/operands.py",
        "simulator/compile/guards.py",
        "simulator/compile/emit.py",
    ),
    "together": (
        "simulator/compile/together.py",
        "simulator/memory/loads.py",
        "simulator/compile/chains.py",
        "simulator/isa/chain.py",
    ),
    "patterns": (
        "simulator/observe/patterns.py",
        "simulator/observe/costs.py",
        "simulator/observe/put_by.py",
        "simulator/moves.py",
        "simulator/memory/recent.py",
        "simulator/memory/extents.py",
        "simulator/races/first_touches.py",
    ),
    "needed": ("simulator/compile/needed.py", "simulator/execute/kept.py"),
    "tables": ("simulator/races/history.py", "simulator/races/shadow.py"),
}
Key = tuple[str, int]


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    Attributes:
        file: Relative to the repository.
        line: The first line that it changes.
        text: The whole file with the change.
        diff: The change, for reading.
    """

    file: str
    line: int
    text: str
    diff: str


def codes(text: str, file: str) -> dict[Key, types.CodeType]:
    """The code of every function of a text, by qualified name and first line."""
    found: dict[Key, types.CodeType] = {}
    todo = [compile(text, str(ROOT / file), "exec")]
    while todo:
        code = todo.pop()
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                found[constant.co_qualname, constant.co_firstlineno] = constant
                todo.append(constant)
    return found


def drawn(area: str, count: int, seed: int) -> list[Mutant]:
    """A sample of an area's mutants that change the code of a function (messages, too)."""
    from mutmut.mutation.file_mutation import create_mutations

    possible = []
    for file in AREAS[area]:
        module, mutations, _, _ = create_mutations(file, (ROOT / file).read_text())
        possible += [(file, module, m) for m in mutations if m.contained_by_top_level_function]
    random.Random(seed).shuffle(possible)
    made = (
        _mutant(file, module.deep_replace(m.original_node, m.mutated_node).code)
        for file, module, m in possible
    )
    return list(itertools.islice(filter(changes, made), count))


def _mutant(file: str, changed: str) -> Mutant:
    before, after = (ROOT / file).read_text().splitlines(), changed.splitlines()
    diff = [
        line for line in difflib.unified_diff(before, after, file, file, lineterm="", n=0)
        if not line.startswith("---") and not line.startswith("+++")
    ]  # fmt: skip
    line = next((i for i, (a, b) in enumerate(zip(before, after, strict=False), 1) if a != b), 1)
    return Mutant(file, line, changed, "\n".join(diff))


def changes(mutant: Mutant) -> dict[Key, types.CodeType]:
    """The functions that a mutant changes.

    None, if it is in what runs at import alone, as a class's body does: it cannot be put into
    a live process.
    """
    old, new = codes((ROOT / mutant.file).read_text(), mutant.file), codes(mutant.text, mutant.file)
    return {
        key: code
        for key, code in new.items()
        if code.co_flags & inspect.CO_OPTIMIZED and key in old and old[key] != code
    }


def apply(mutant: Mutant) -> int:
    """Give the functions of this process the mutant's code; how many were changed.

    Functions are changed where they are, so that whoever has imported one calls the mutant.
    What runs at import (constants, defaults, decorators) cannot be changed so.
    """
    path, changed = str(ROOT / mutant.file), changes(mutant)
    count = 0
    gc.unfreeze()  # what is frozen (``tests/conftest.py``) is not listed
    for thing in gc.get_objects():
        if isinstance(thing, types.FunctionType) and thing.__code__.co_filename == path:
            code = changed.get((thing.__code__.co_qualname, thing.__code__.co_firstlineno))
            if code is not None and len(code.co_freevars) == len(thing.__code__.co_freevars):
                thing.__code__ = code
                count += 1
    return count

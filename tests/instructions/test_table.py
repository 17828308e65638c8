"""Every row of the instruction table has a test."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest
import test_control
import test_memory

from simulator.isa import TABLE

from .exact import lanes


def modules() -> list[ModuleType]:
    """The test modules of this folder and the one below that have cases."""
    here = Path(__file__).parent
    found = []
    for path in sorted(here.rglob("test_*.py")):
        name = ".".join(path.relative_to(here).with_suffix("").parts)
        if name not in ("test_table", "test_shapes", "test_lengths"):
            found.append(importlib.import_module(f"{__package__}.{name}"))
    return found


def opcodes_of(module: ModuleType) -> set[str]:
    """The opcodes in the code that a module's cases run."""
    cases = list(module.CASES) + [c for c in (getattr(module, "ACTIVE", None),) if c]
    if hasattr(cases[0], "opcodes"):
        return set().union(*(case.opcodes for case in cases))
    return set(lanes.covered(cases))


VALUES = {module.__name__: opcodes_of(module) for module in modules()}


@pytest.mark.parametrize("opcode", sorted(o for o, rows in TABLE.items() if rows[0].forms))
def test_row_has_a_test(opcode: str) -> None:
    tested = test_memory.OPCODES | test_control.OPCODES
    if all(row.build for row in TABLE[opcode] if row.forms):
        tested = tested.union(*VALUES.values())
    assert opcode in tested


@pytest.mark.parametrize("module", [test_memory, test_control], ids=lambda m: m.__name__)
def test_named_opcodes_are_run(module: ModuleType) -> None:
    """What those modules say they cover stands as an instruction in their code."""
    source = inspect.getsource(module)
    for opcode in module.OPCODES:
        assert opcode in TABLE
        assert re.search(rf'["; ]{opcode}(?:[.;]|\{{dot| \d)', source), opcode


def test_cases_are_of_the_table() -> None:
    assert set().union(*VALUES.values()) <= set(TABLE)

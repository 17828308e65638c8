"""Every row of the instruction table has a test."""

import functools
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

from simulator.isa import TABLE, InstructionSpec, parse
from simulator.isa.decoded import roles
from simulator.isa.scalar import mov_prmt
from tests.simulator.execute.calls import test_control
from tests.simulator.execute.sync import test_clusters, test_mbarrier
from tests.simulator.isa.harness import kernel
from tests.simulator.memory import test_atomics, test_memory, test_surfaces, test_textures
from tests.simulator.races.in_flight import test_copies

ROWS = [
    row
    for rows in TABLE.values()
    for row in rows
    if row.signatures and row.build is not mov_prmt.move_parts
]
"""What is executed: the meaning of a move of parts to parts is that it is refused."""


@functools.cache
def reached() -> list[InstructionSpec]:
    """The rows of what this folder's cases run."""
    paths = sorted(Path(__file__).parent.glob("test_*.py"))
    names = [path.stem for path in paths if path.stem not in ("test_table", "test_carriers")]
    modules = [importlib.import_module(f"{__package__}.{name}") for name in names]
    cases = [case for module in modules for case in getattr(module, "CASES", ())]
    scopes = [f"{{ {case.plain} }}" for case in cases]
    function = parse(kernel(scopes, 0).ptx).functions["k"]
    function.load()
    return list({id(row): row for row in (roles(ins).row for ins in function.body)}.values())


PLACES = (
    test_atomics, test_clusters, test_control, test_copies, test_mbarrier, test_memory,
    test_surfaces, test_textures,
)  # fmt: skip
"""Modules whose opcodes have tests of their own."""


@pytest.mark.slow_cases("sub0", "sub1", "sub2", "sub3")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.opcode)
def test_row_has_a_test(row: InstructionSpec) -> None:
    if any(row.opcode in module.OPCODES for module in PLACES):
        assert row.opcode not in {found.opcode for found in reached()}
    else:
        assert any(row is found for found in reached())


@pytest.mark.parametrize("module", PLACES, ids=lambda m: m.__name__)
def test_named_opcodes_are_run(module: ModuleType) -> None:
    """What those modules say they cover stands as an instruction in their code."""
    source = inspect.getsource(module)
    for opcode in module.OPCODES:
        assert opcode in TABLE
        assert re.search(rf'["; ]{opcode}(?:[.;]|\{{dot| [A-Z\d])', source), opcode

"""Shared-memory loads merged by ptxas: access widths in the machine code."""

from kernels.machine_code.cubin import MachineCode
from kernels.machine_code.sass import instructions

from ..compile.program import Program
from ..memory.site import Site


def sites_by_line(program: Program) -> dict[int, list[Site]]:
    """Return a program's accesses by PTX line."""
    found: dict[int, list[Site]] = {}
    for site in program.sites:
        found.setdefault(site.instruction.line, []).append(site)
    return found


def widths(program: Program, code: MachineCode) -> dict[int, int]:
    """Return the bytes of a lane of each access in the machine code; 0 for merged parts."""
    made: dict[int, list[int]] = {}
    shared = {"load_shared", "load_global", "store_shared", "store_global"}
    for instruction in instructions(code):
        if instruction.width and instruction.pipe in shared:
            made.setdefault(instruction.line, []).append(instruction.width)
    found = {}
    for line, sites in sites_by_line(program).items():
        site = sites[0]
        if len(sites) > 1 or not site.counted or site.access == "atomic" or not site.traffic:
            continue
        there = made.get(line)
        merged = not there and site.space == "shared" and site.access == "load"
        if merged:
            found[site.number] = 0
        elif there and site.space == "shared" and site.access == "load":
            found[site.number] = max(site.nbytes, max(there))
    return found

"""Data of a run apart from its steps: source, arrays, counters, hazards."""

import math
import os
import re
from collections import Counter
from importlib import resources
from typing import Any

import numpy as np

from kernels.compiler.toolkit import short_path
from kernels.ptx.module import Function, Imm, Instruction, Reg
from kernels.ptx.names import variable_name
from kernels.source_access import beneath
from simulator import Run
from simulator.compile.cfg.basic_blocks import reachable
from simulator.compile.ir_values import operand_text
from simulator.compile.passes.tracing import decided_by
from simulator.compile.probes import Watched
from simulator.hazards.hazard import Hazard
from simulator.isa.decoded import moves, roles
from simulator.memory.storage.layout import array_number
from simulator.observe.trace.access_counts import ArrayMap
from simulator.observe.trace.trace import Trace

from .addresses import address_arithmetic
from .extents import extents, kind
from .origins import origins
from .pool import Pool

MAX_CELLS = 1 << 20
"""Elements up to which an array is drawn."""
_MAX_LINES = 4000
_ASM = re.compile(r"\basm\b[^;\"]*\((?:\"(?:\\\\.|[^\"\\\\])*\"|[^;\"])*;")


class Text:
    """Source files and PTX of a kernel, by the numbers that the page uses."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.files: dict[str, int] = {}
        self.addresses = address_arithmetic(trace)
        self.constants: dict[str, dict[str, str]] = {}
        self._asm_lines: dict[str, set[int]] = {}
        self.decided = decided_by([block.block for block in trace.program.blocks])
        self.branches = {
            item.block: number
            for number, item in enumerate(trace.program.watched or [])
            if item.what == "branch" and item.block in trace.program.data.branches
        }
        self.ptx: list[dict[str, Any]] = []
        lines = trace.kernel.ptx.splitlines()
        module = trace.program.module
        for function in reachable(module, trace.kernel.entry):
            for ins in function.body[:_MAX_LINES]:
                file, line = self.place(ins)
                text = " ".join(lines[ins.line - 1].split()) if ins.line <= len(lines) else ""
                self.ptx.append({"line": ins.line, "text": text, "file": file, "source": line})

    def place(self, ins: Instruction) -> tuple[int, int]:
        """Return file number and line of an instruction's source, or ``(-1, 0)``."""
        location = ins.location.user if ins.location else None
        if location is None or not location.line:
            return -1, 0
        while location.inlined_at and location.line in self.asm_lines(location.file):
            location = location.inlined_at  # the call says more than the text of the assembly
        return self.files.setdefault(location.file, len(self.files)), location.line

    def asm_lines(self, file: str) -> set[int]:
        """Return the lines of a file's ``asm`` statements."""
        if file not in self._asm_lines:
            self._asm_lines[file] = statement_lines(self.trace.kernel.source_text(file) or "")
        return self._asm_lines[file]

    def sources(self) -> list[dict[str, Any]]:
        """Return path and lines of each source file."""
        found = []
        for file in self.files:
            text = self.trace.kernel.source_text(file) or ""
            found.append({"path": shown_path(file), "lines": text.splitlines()[:_MAX_LINES]})
        return found

    def inputs(self, item: Watched) -> list[int | str]:
        """Return the operands: a traced register's number, a constant, or a register's name."""
        data = self.trace.program.data.registers
        if item.what != "value":
            return list(item.inputs)
        function = self.trace.program.blocks[item.block].block.function
        if function.name not in self.constants:
            self.constants[function.name] = _constants(function)
        found: list[int | str] = []
        for number, operand in enumerate(item.inputs):
            place = item.instruction.operands[number + 1 : number + 2]
            plain = isinstance(operand, int) and operand >= 0 and operand not in data
            if plain and place and isinstance(place[0], Reg):
                name = place[0].name
                found.append(self.constants[function.name].get(name, name))
            else:
                found.append(operand)
        return found

    def watched(self, item: Watched, pool: Pool) -> dict[str, Any]:
        """Return the data of an instruction that the trace records."""
        ins, site = item.instruction, item.site
        file, line = self.place(ins)
        made: dict[str, Any] = {
            "name": ins.name, "kind": item.what, "ptx": ins.line, "file": file, "source": line,
            "outputs": list(item.outputs), "inputs": self.inputs(item),
        }  # fmt: skip
        if item.what == "value" and ins.line in self.addresses:
            made["address"] = True
        if site is not None:
            made |= {"space": site.space, "width": site.nbytes, "size": site.size}
            made["operation"] = site.operation
        if item.base is not None:
            made["base"] = item.base
        if item.guard is not None:
            made["guard"] = item.guard
        if decided := self.deciders(item):
            made["decided"] = decided
        made |= origins(self.trace.program, item, pool)
        if item.what == "value" and moves(ins) and not {"address", "parts"} & made.keys():
            made["moves"] = True
        return made

    def deciders(self, item: Watched) -> list[int]:
        """Return the numbers of the branches that decide whether an instruction is executed."""
        bits = self.decided[item.block]
        return [n for block, n in self.branches.items() if bits >> block & 1]


def statement_lines(source: str) -> set[int]:
    """Return the lines of the ``asm`` statements in CUDA C++."""
    found: set[int] = set()
    for match in _ASM.finditer(source):
        first = source.count("\n", 0, match.start()) + 1
        found.update(range(first, first + match[0].count("\n") + 1))
    return found


def _constants(function: Function) -> dict[str, str]:
    """Return the registers whose only write is a ``mov`` of a constant."""
    written = Counter(name for ins in function.body for name in roles(ins).writes)
    found = {}
    for ins in function.body:
        if roles(ins).row.copies:
            into, value = ins.operands
            if isinstance(into, Reg) and isinstance(value, Imm) and written[into.name] == 1:
                found[into.name] = operand_text(value)
    return found


def shown_path(file: str) -> str:
    """Return a file's name without folders of this machine, because pages are published."""
    short = short_path(file)
    inside = beneath(short, str(resources.files("kernels")))
    if inside is not None:
        return os.path.join("kernels", inside)
    return os.path.basename(short) if os.path.isabs(short) else short


def lines(run: Run) -> list[dict[str, Any]]:
    """Return the counters of each source line, without those of memory that it does not access.

    ``moved`` adds its sectors and wavefronts. ``waste`` adds the sectors' worth of bytes that no
    thread asked for and the bank conflicts.
    """
    found = []
    for item in run.lines:
        every = item.counters.to_dict()
        some = {n: v for n, v in every.items() if not isinstance(v, dict) or v.get("requests")}
        traffic = [v for v in some.values() if isinstance(v, dict)]
        moved = sum(v.get("sectors", 0) + v.get("wavefronts", 0) for v in traffic)
        waste = sum(v["sectors"] - v["distinct_bytes"] / 32 for v in traffic if v.get("sectors"))
        waste += sum(v.get("bank_conflicts", 0) for v in traffic)
        found.append(
            item.to_dict()
            | {"file": shown_path(item.file), "counters": some, "moved": moved, "waste": waste}
        )
    return found


def arrays(trace: Trace, pool: Pool, values: bool) -> list[dict[str, Any]]:
    """Return the global arrays that are arguments of the launch or that it accesses."""
    found = []
    constant = {
        int(array_number(placed.address))
        for placed in trace.program.layout.placed.values()
        if placed.variable.space == "const"
    }
    for item in trace.maps.values():
        touched = bool(item.reads.any() or item.writes.any())
        if item.reads.size and (item.argument or touched):
            space = "constant" if item.number in constant else "global"
            found.append(_array(item, pool, values) | {"space": space})
    return _with_unique_names(found)


def _with_unique_names(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Number variables of equal names: two functions may declare the same name."""
    count: Counter[str] = Counter()
    for made in found:
        count[made["name"]] += 1
        if count[made["name"]] > 1:
            made["name"] += f" ({count[made['name']]})"
    return found


def _array(item: ArrayMap, pool: Pool, values: bool) -> dict[str, Any]:
    drawn = item.reads.size <= MAX_CELLS
    made: dict[str, Any] = {
        "place": item.number, "name": variable_name(item.name), "type": item.dtype.name,
        "shape": list(item.shape), "size": item.size, "count": int(item.reads.size),
        "unit": "element" if item.is_typed else "byte",
        "drawn": drawn, "argument": item.argument, "reads_total": int(item.reads.sum()),
        "writes_total": int(item.writes.sum()),
    }  # fmt: skip
    if drawn:
        for name in ("reads", "writes"):
            counts = getattr(item, name)
            made[name] = pool.add(counts.astype(np.int32 if counts.max() < 2**31 else np.float64))
        made["owner"] = pool.add(np.diff(item.owner, prepend=0).astype(np.int32))  # deflates well
        if values and item.dtype.kind in "fiu":
            made["before"] = pool.add(item.before.view(item.dtype))
            made["after"] = pool.add(item.after.view(item.dtype))
    return made


def shared(trace: Trace, nbytes: int) -> list[dict[str, Any]]:
    """Return the shared variables, with the extents of their declarations if these are known."""
    layout = trace.program.layout
    source = "\n".join(trace.kernel.declarations.values())
    sizes = _element_sizes(trace)
    found = []
    for placed in layout.placed.values():
        variable = placed.variable
        if variable.space != "shared" or placed.address >= nbytes:
            continue
        length = variable.nbytes or nbytes - placed.address
        inside = [size for at, size in sizes.items() if 0 <= at - placed.address < length]
        name = variable_name(variable.name)
        letter = kind(name, source)
        size = 2 if letter == "h" else min(inside, default=4)
        shape = extents(name, length // size, source, trace.kernel.name)
        found.append(
            {
                "name": name, "start": placed.address, "bytes": length, "size": size,
                "space": "shared", "unit": "element", "kind": letter,
                "shape": list(shape or (length // size,)),
            }
        )  # fmt: skip
    return _with_unique_names(sorted(found, key=lambda item: (item["start"], -item["bytes"])))


def _element_sizes(trace: Trace) -> dict[int, int]:
    """Return the smallest element size of the accesses at each first shared address."""
    found: dict[int, int] = {}
    for batch in trace.batches:
        for event in batch.events:
            if event.offset is not None and event.place.ndim == 0 and event.place == -1:
                site = (trace.program.watched or [])[event.watched].site
                if site is not None:
                    at = int(event.offset.min())
                    found[at] = min(found.get(at, site.size), site.size)
    return found


def hazards(run: Run) -> list[dict[str, Any]]:
    """Return the hazards with their report, and the text, diff and line of the fix."""
    groups = list(dict.fromkeys(hazard.fix.group for hazard in run.hazards if hazard.fix))
    return [
        _hazard(hazard) | {"fix_group": groups.index(hazard.fix.group) if hazard.fix else -1}
        for hazard in run.hazards
    ]


def _hazard(hazard: Hazard) -> dict[str, Any]:
    return hazard.to_dict() | {
        "involved": [
            item.to_dict() | {"file": shown_path(item.source.file)} for item in hazard.involved
        ],
        "fix": None,
        "race": hazard.row.is_race,
        "fix_text": str(hazard.fix) if hazard.fix else "",
        "fix_diff": hazard.fix.diff.splitlines()[2:] if hazard.fix else [],
        "fix_line": hazard.fix.source.line if hazard.fix else 0,
    }


def plain(value: Any) -> Any:
    """Replace NaN and infinity, which JSON has not, by ``None``."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value

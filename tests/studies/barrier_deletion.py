"""Study: delete each barrier of the library and of ``barrier_shapes/``, and judge what follows.

Judge ``noticed`` deletes a barrier from the PTX of a kernel: either a check reports something, or
the outputs are the same bits under eight random schedules. Judge ``given_back`` deletes
``__syncthreads()`` from the source: the fix that ``check`` finds has to restore it. ``python -m
tests.studies.barrier_deletion`` prints the table of the second; words after it choose kernels by a
part of their name. ``test_barrier_deletion.py`` runs the first, and some of the second.
"""

import dataclasses
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import simulator
from kernels import Kernel, library
from kernels.library import LibraryKernel
from kernels.ptx.module import Instruction
from kernels.source.source_edit import applied, line_of
from kernels.source.syntax import parse
from simulator import Hazard
from simulator.compile.cfg.basic_blocks import reachable
from simulator.fixes.edits.ptx_edit import without_barriers
from simulator.fixes.verification import nothing_new
from simulator.isa import parse as parse_ptx
from tests.support.paths import TESTS
from tilescope.check.checker import Checker
from tilescope.check.fix import edits
from tilescope.check.launcher import Launcher
from tilescope.cli.request import Request
from tilescope.cli.target import Target, resolve

SHAPES = TESTS / "studies" / "barrier_shapes"
SIZES = {"matmul_naive_square": (40,) * 3, "matmul_tiled_exact": (32,) * 3,
         "matmul_vectorised": (40, 36, 48), "matmul_register_tiled": (70, 66, 40),
         "matmul_warp_tiled": (70, 66, 40), "matmul_tensor": (72, 72, 136),
         "matmul_wgmma": (72, 72, 136),
         "faulty_missing_cluster_barrier": (4,), "faulty_missing_cluster_barrier_fixed": (4,),
         "faulty_missing_last_cluster_barrier": (4,),
         "faulty_missing_last_cluster_barrier_fixed": (4,)}  # fmt: skip
"""Where the usual ones do not suit; more than a tile each way, and some of the last one."""
SMALL = SIZES | {"matmul_tensor": (8, 16, 40), "matmul_wgmma": (8, 16, 200),
                 "matmul_async_copy": (17, 9, 33)}  # fmt: skip
"""Sizes of kernels that run under nine schedules for each barrier."""
_USUAL = {1: (600,), 2: (40, 70), 3: (40, 33, 50)}
SCHEDULES = range(8)


def in_ptx(kernel: Kernel) -> list[Instruction]:
    """Return the barriers that a kernel can reach, of the block or of the warp, once each.

    A function that is called from several places has a copy for each in ``reachable``.
    """
    found = {
        ins.line: ins
        for function in reachable(parse_ptx(kernel.ptx), kernel.entry)
        for ins in function.body
        if ins.opcode in ("bar", "barrier")
    }
    return list(found.values())


def outputs(
    entry: LibraryKernel, kernel: Kernel, schedule: str | int, checks: str
) -> tuple[simulator.Run, list[bytes]]:
    """Run a kernel of the library, and return the bits of its outputs too."""
    launch = entry.launch(SMALL.get(entry.name, _usual(entry)))
    run = simulator.launch(
        kernel, launch.grid, launch.block, launch.args, launch.shared_bytes, schedule, checks
    )
    return run, [launch.args[place].tobytes() for place in launch.outputs.values()]


def noticed(entry: LibraryKernel, kernel: Kernel, line: int, wanted: list[bytes]) -> str:
    """Return the hazards without the barrier on a line of the PTX, ``harmless`` or ``MISSED``."""
    mutant = without_barriers(kernel, [line])
    run, _ = outputs(entry, mutant, "lockstep", "all")
    if run.hazards:
        return ", ".join(sorted({f"{h.kind} ({h.severity})" for h in run.hazards}))
    for schedule in SCHEDULES:
        if outputs(entry, mutant, schedule, "none")[1] != wanted:
            return f"MISSED: wrong under schedule {schedule}"
    return f"harmless: equal under {len(SCHEDULES)} schedules"


@dataclass(frozen=True)
class Lost:
    """A barrier of a kernel.

    Attributes:
        name: The library kernel's name, or the shape's.
        file: Where it stands.
        line: Its line.
        start, end: The bytes to delete: the barrier, with the ``if`` that is for it alone.
    """

    name: str
    file: Path
    line: int
    start: int
    end: int


@dataclass(frozen=True)
class Verdict:
    """What a check says without the barrier.

    Attributes:
        hazards: How many errors that are not there with it.
        unfixed: How many of them have no fix.
        lines: Where fixes put something, in lines of the whole file.
        same: Whether the text is what it was, but for white space and comments.
        proof: What the fix was verified by.
        faulty: Whether the barrier is itself what is wrong, on purpose.
        others: How many errors there are with it, of another fault of the kernel.
    """

    lost: Lost
    hazards: int
    unfixed: int
    lines: tuple[int, ...]
    same: bool
    proof: str
    faulty: bool
    others: int

    @property
    def word(self) -> str:
        """The verdict in a word or two."""
        if self.faulty:
            return "itself the fault"
        if not self.hazards:
            return "not needed by checks"
        if self.unfixed or not self.lines:
            return "another fault, too" if self.others else "NOT GIVEN BACK"
        return "same place" if self.same else "equivalent"


def names() -> list[str]:
    """All kernels: the library's, then the shapes."""
    return [*library.names(), *(file.stem for file in sorted(SHAPES.glob("*.cu")))]


def in_source(name: str) -> list[Lost]:
    """Return the barriers of the kernel and of the functions it calls, file by file."""
    found = []
    for file, wanted in _sources(name).items():
        content = file.read_bytes()
        functions = {_function_name(f): f for f in _nodes(parse(content).root_node)}
        for function in wanted or list(functions):
            calls = _nodes(functions[function], "call_expression")
            called = [_text(c.child_by_field_name("function")).partition("<")[0] for c in calls]
            wanted += [c for c in called if c in functions and c not in wanted]
            for call, callee in zip(calls, called, strict=True):
                if callee == "__syncthreads":
                    node = call.parent
                    while node.parent.type == "if_statement":
                        node = node.parent
                    found.append(Lost(name, file, line_of(content, call.start_byte),
                                      node.start_byte, node.end_byte))  # fmt: skip
    return sorted(set(found), key=lambda lost: (lost.file, lost.start))


def given_back(lost: Lost) -> Verdict:
    """Delete the barrier in a copy, check, and look at the fixes."""
    content = lost.file.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        for file in _sources(lost.name):
            shutil.copy(file, folder)
        file = Path(folder).resolve() / lost.file.name
        before = _checked(lost.name, file.parent, fixes=False)
        file.write_bytes(content[: lost.start] + content[lost.end :])
        found = _checked(lost.name, file.parent, fixes=True)
        written = edits(found)
        text = applied(file.read_bytes(), written.get(file, []))
    errors = [h for h in found if h.severity == "error" and not nothing_new([h], before)]
    fixes = [hazard.fix for hazard in errors if hazard.fix]
    return Verdict(
        lost, len(errors), len(errors) - len(fixes),
        tuple(edit.line for several in written.values() for edit in several),
        _bare(text) == _bare(content), fixes[0].proof if fixes else "",
        any(h.kind in ("barrier-divergence", "deadlock") and lost.line in h.lines for h in before),
        sum(h.severity == "error" for h in before),
    )  # fmt: skip


def every(words: list[str]) -> Iterator[Verdict]:
    """All barriers of the kernels whose names have one of the words in them."""
    for name in names():
        if not words or any(word in name for word in words):
            for lost in in_source(name):
                yield given_back(lost)


def _sources(name: str) -> dict[Path, list[str]]:
    """The files of a kernel, and which functions of each; all if none is named."""
    if name not in library.names():
        main = SHAPES / f"{name}.cu"
        headers = [file for file in SHAPES.glob("*.cuh") if file.name in main.read_text()]
        return {file: [] for file in (main, *headers)}
    entry = library.get(name)
    return {entry.path: [entry.entry.partition("<")[0].rpartition("::")[2]]}


def _checked(name: str, folder: Path, fixes: bool) -> list[Hazard]:
    """What a check says of a kernel, its sources taken from a folder."""
    target = _target(name, next(iter(_sources(name))), folder)
    return Checker(Launcher(target, quiet=True)).check(("device", "source"), fixes).hazards


def _target(name: str, main: Path, folder: Path) -> Target:
    if name not in library.names():
        said = re.search(r"launch: (\S+ )?grid (\S+) block (\S+), (.*)", main.read_text())
        entry = (said[1] or name).strip()
        words = (entry, *said[4].split())
        return resolve(Request(str(folder / main.name), words, grid=said[2], block=said[3]))
    entry = dataclasses.replace(library.get(name), source=str(folder / main.name))
    size = SIZES.get(name, _usual(entry))
    launch = entry.launch(size)
    return Target(
        name, entry.kernel(), launch.grid, launch.block, launch.args, launch.shared_bytes,
        entry, size, entry.default_tile, launch, launch.expected(),
    )  # fmt: skip


def _usual(entry: LibraryKernel) -> tuple[int, ...]:
    return (3,) if entry.name.startswith("faulty_") else _USUAL[len(entry.axes)]


def _bare(text: bytes) -> bytes:
    """Without comments, white space, and the condition of a barrier that stands in an ``if``."""
    lines = [line.partition(b"//")[0] for line in text.splitlines()]
    return b"".join(b"".join(lines).split()).replace(b"if(RIGHT)__sync", b"__sync")


def _nodes(root: Any, kind: str = "function_definition") -> list[Any]:
    found, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        found += [node] if node.type == kind else []
        waiting += reversed(node.named_children)
    return found


def _function_name(function: Any) -> str:
    declarator = function.child_by_field_name("declarator")
    while (inner := declarator.child_by_field_name("declarator")) is not None:
        declarator = inner
    return re.findall(r"\w+", _text(declarator))[0]


def _text(node: Any) -> str:
    return node.text.decode() if node is not None else ""


def main() -> int:
    """Print the table; 1 if a barrier is not given back."""
    missed = 0
    print(f"{'kernel':<36}{'line':>4}{'errors':>8}  {'fix at':<10}verdict")
    for verdict in every(sys.argv[1:]):
        missed += verdict.word.isupper()
        at = ", ".join(map(str, verdict.lines)) or "-"
        print(
            f"{verdict.lost.name:<36}{verdict.lost.line:>4}{verdict.hazards:>8}  {at:<10}"
            f"{verdict.word}", flush=True,
        )  # fmt: skip
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())

"""Necessity of barriers: what happens without each barrier of the source."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kernels import Kernel, KernelError
from kernels.compiler.recompile import recompiled, user_files
from kernels.ptx.module import Instruction

from ..compile.cfg.basic_blocks import reachable
from ..hazards.hazard import Hazard, Source
from ..hazards.sources import Sources
from ..isa import parse
from ..run import Run
from .edits.ptx_edit import is_barrier, without_barriers
from .search import identity

_BETWEEN = re.compile(rb"(?<=[;{}])(?=[ \t]*[^\s/])")
"""Between two statements of a line."""


@dataclass(frozen=True)
class BarrierVerdict:
    """Result of a launch without one of the source's barriers.

    Attributes:
        source: Its source line.
        hazards: Hazards that appear without the barrier and do not exist with it, errors first.
        copies: Number of its copies in the PTX.
        which: Which barrier of its line it is, from 1, and how many the line has that can be
            distinguished.
    """

    source: Source
    hazards: tuple[Hazard, ...]
    copies: int
    which: tuple[int, int] = (1, 1)

    @property
    def needed(self) -> bool:
        """Whether hazards appear without the barrier."""
        return bool(self.hazards)


def judge_barriers(
    kernel: Kernel, run: Run, rerun: Callable[[Kernel], Run]
) -> list[BarrierVerdict]:
    """Remove each barrier of the source in turn, and run.

    ``rerun`` runs an edited kernel on the same inputs.
    """
    known = {(identity(h), h.variables) for h in run.hazards}
    sources, verdicts = Sources(kernel.source_text), []
    for barriers in _distinguish_copies(kernel):
        for number, copies in enumerate(barriers, 1):
            without = rerun(without_barriers(kernel, [ins.line for ins in copies]))
            new = tuple(h for h in without.hazards if (identity(h), h.variables) not in known)
            which = number, len(barriers)
            verdicts.append(BarrierVerdict(sources.of(copies[0]), new, len(copies), which))
    return sorted(verdicts, key=lambda v: (v.source.file, v.source.line, v.which))


def barriers_of(kernel: Kernel) -> list[list[Instruction]]:
    """Return the barriers of each source line, with all their copies in the PTX."""
    groups: dict[object, list[Instruction]] = {}
    for ins in _barriers(kernel):
        groups.setdefault(_line(ins) or ins.line, []).append(ins)
    return list(groups.values())


def _barriers(kernel: Kernel) -> Iterator[Instruction]:
    for function in reachable(parse(kernel.ptx), kernel.entry):
        yield from filter(is_barrier, function.body)


def _line(ins: Instruction) -> tuple[str, int] | None:
    at = ins.location.user if ins.location else None
    return (at.file, at.line) if at else None


def _distinguish_copies(kernel: Kernel) -> list[list[list[Instruction]]]:
    """Return the barriers of each source line separately, each with its copies in the PTX.

    Compilers record only the line, so that the source is compiled again with one line for each
    statement. Barriers of one macro stay together.
    """
    lines = barriers_of(kernel)
    kernel_by_line = _a_line_each(kernel, {_line(copies[0]) for copies in lines if len(copies) > 1})
    stands = dict(zip((ins.at for ins in _barriers(kernel)), kernel_by_line, strict=False))
    found = []
    for copies in lines:
        barriers: dict[object, list[Instruction]] = {}
        for ins in copies:
            barriers.setdefault(stands.get(ins.at), []).append(ins)
        found.append(list(barriers.values()))
    return found


def _a_line_each(kernel: Kernel, lines: set[tuple[str, int] | None]) -> list[object]:
    """Return the lines of the barriers after some lines are broken; empty if that fails.

    A line that ends with a backslash continues in the next, in comments and macros too.
    """
    files = {}
    for path, content in (before := user_files(kernel)).items():
        text = content.splitlines(keepends=True)
        for at in lines:
            if at and Path(at[0]).resolve() == path and 0 < at[1] <= len(text):
                text[at[1] - 1] = _BETWEEN.sub(b"\\\n", text[at[1] - 1])
        files[path] = b"".join(text)
    if files == before:
        return []
    try:
        broken = recompiled(kernel, files, kernel.build)
    except KernelError:
        return []
    same = _program(kernel) == _program(broken)
    return [_line(ins) for ins in _barriers(broken)] if same else []


def _program(kernel: Kernel) -> list[str]:
    functions = reachable(parse(kernel.ptx), kernel.entry)
    return [ins.name for function in functions for ins in function.body]

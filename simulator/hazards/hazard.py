"""Hazards: what is wrong with a kernel, where, and an example of it."""

from __future__ import annotations

import itertools
import textwrap
from dataclasses import dataclass, field
from typing import Any

from kernels.reading import plain
from kernels.source_edit import Edit

Triple = tuple[int, int, int]
_COLUMNS = 80
_CODE = 20
"""Columns that a line of code needs to be worth showing."""

SEVERITIES = {
    "raw-race": "error", "war-race": "error", "waw-race": "error",
    "barrier-divergence": "error", "deadlock": "error", "livelock": "error",
    "out-of-bounds": "error", "misaligned": "error", "read-only": "error",
    "address-space": "error", "uninitialised": "error", "bad-mask": "error",
    "assert": "error", "trap": "error",
    "unset-constant": "warning",
}  # fmt: skip
"""Every kind of hazard and its usual severity."""


@dataclass(frozen=True)
class Source:
    """A source line: path, number from 1 (0: unknown), and its code."""

    file: str
    line: int
    code: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"file": self.file, "line": self.line, "code": self.code}


@dataclass(frozen=True)
class Involved:
    """One instruction that takes part in a hazard, and an example of who executed it.

    Attributes:
        role: ``read``, ``write``, ``atomic``, ``waits``, ``missing`` ...
        instruction: Its PTX opcode; ``ptx_line`` its line in the PTX text.
        thread: An example thread, x first, and its ``block``.
        calls: The calls that led to the source line, innermost first.
        also: Other calls that led to it, of the function that ``source`` stands in.
        inside: Where it stands in a toolkit's header, if ``source`` calls one.
    """

    role: str
    source: Source
    instruction: str
    ptx_line: int
    thread: Triple | None = None
    block: Triple | None = None
    calls: tuple[Source, ...] = ()
    also: tuple[Source, ...] = ()
    inside: Source | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "role": self.role,
            "file": self.source.file,
            "line": self.source.line,
            "code": self.source.code,
            "instruction": self.instruction,
            "ptx_line": self.ptx_line,
            "thread": self.thread,
            "block": self.block,
            "calls": [source.to_dict() for source in self.calls],
            "also_called": [source.to_dict() for source in self.also],
            "inside": self.inside.to_dict() if self.inside else None,
        }


@dataclass(frozen=True)
class Cure:
    """An edit that removes the hazard, proved by compiling it and by runs with it.

    Attributes:
        source: The source line that the edit is told by.
        ptx_lines: For PTX alone: the lines before which a barrier was put (several if
            unrolled).
        left: Errors that the run with this edit still had, none of them new.
        together: Errors left with the cures of the other races as well; ``None`` if there
            are no others, or nothing is left anyway.
        where: Whether the text goes ``before`` or ``after`` the line, or what begins there is
            ``split by`` it.
        text: What is put there.
        how: What else is to say of the place, after the line's number.
        diff: The edit as a unified diff; empty for PTX alone.
        proof: In which builds, schedules and launch shapes it was verified.
        edit: What ``tilescope check --fix`` writes.
        group: Which hazards it mends, all of one launch; the same number, the same edit.
    """

    source: Source
    ptx_lines: tuple[int, ...] = ()
    left: int = 0
    together: int | None = None
    where: str = "after"
    text: str = "__syncthreads();"
    how: str = ""
    diff: str = field(default="", repr=False)
    proof: str = ""
    edit: Edit | None = field(default=None, repr=False, compare=False)
    group: int = 0

    @property
    def file(self) -> str:
        """The file to edit."""
        return self.source.file

    @property
    def line(self) -> int:
        """The line, from 1, that the text goes before or after (0: PTX without lines)."""
        return self.source.line

    def __str__(self) -> str:
        errors = "error" if self.left == 1 else "errors"
        place = f"line {self.line}" if self.line else str(self.source)
        text = f"{self.text.rstrip(';')} {self.where} {place}{self.how}"
        if self.where == "split by":
            text = f"{self.text.rstrip(';')} splits the statement on {place}"
        text += f": verified, {self.left} {errors} left"
        return text if self.together is None else f"{text}, {self.together} with the other cures"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "file": self.source.file,
            "after_line": self.line if self.where == "after" else max(self.line - 1, 0),
            "line": self.line,
            "where": self.where,
            "text": self.text,
            "diff": self.diff,
            "verified": self.proof,
            "group": self.group,
            "left": self.left,
            "left_with_other_cures": self.together,
        }


@dataclass
class Hazard:
    """One finding.

    Attributes:
        kind: A key of ``SEVERITIES``.
        message: The finding in a sentence.
        severity: ``error`` or ``warning``.
        space: State space, or ``""``.
        variable: Array or variable name, if known; ``also``: others with the same finding.
        element: Index of an example element (by the access's element size), if known.
        involved: The instructions that take part.
        count: How often: thread accesses; of a race, pairs of threads: two threads that race
            are one pair, however often and at however many locations they do.
        locations: Of a race: elements at which threads race.
        notes: What else a reader wants to know, a line each.
        cure: A verified cure, where one was looked for and found.
        builds: In which builds it was seen, where several were checked.
    """

    kind: str
    message: str
    severity: str = "error"
    space: str = ""
    variable: str = ""
    element: int | None = None
    involved: tuple[Involved, ...] = ()
    count: int = 1
    locations: int = 0
    notes: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    cure: Cure | None = None
    builds: tuple[str, ...] = field(default=())

    @property
    def lines(self) -> tuple[int, ...]:
        """The source line numbers involved."""
        return tuple(i.source.line for i in self.involved if i.source.line)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The source lines involved."""
        return tuple(i.source for i in self.involved)

    @property
    def family(self) -> tuple[Any, ...]:
        """Kind, severity, space, reach of a race (which the message names), and roles."""
        reach = self.message.partition("(")[2] if self.kind.endswith("-race") else ""
        roles = frozenset(item.role for item in self.involved)
        return self.kind, self.severity, self.space, reach, roles

    @property
    def variables(self) -> frozenset[str]:
        """All variables it is about."""
        return frozenset((self.variable, *self.also))

    @property
    def places(self) -> frozenset[tuple[str, int]]:
        """Files and lines involved."""
        return frozenset((source.file, source.line) for source in self.sources)

    @property
    def thread(self) -> Triple | None:
        """An example thread, x first."""
        return self.involved[0].thread if self.involved else None

    @property
    def block(self) -> Triple | None:
        """The example thread's block, x first."""
        return self.involved[0].block if self.involved else None

    def __str__(self) -> str:
        text = textwrap.wrap(f"{self.severity}: {self.message}", _COLUMNS, subsequent_indent="  ")
        roles = max((len(i.role) for i in self.involved), default=0)
        places = max((len(str(i.source)) for i in self.involved), default=0)
        block = None
        for item in self.involved:
            code = item.source.code or item.instruction
            place = f"  {item.role:<{roles}}  {item.source!s:<{places}}"
            if len(place) > _COLUMNS - _CODE:  # a long path: the code gets a line of its own
                text.append(place.rstrip())
                place = f"  {'':<{roles}}"
            line = f"{place}  {code}".rstrip()
            text.append(_clipped(line))
            indent = f"  {'':<{roles}}  "
            chain = [f"called from {call}  {call.code}" for call in item.calls]
            chain += [f"and from    {call}  {call.code}" for call in item.also]
            chain += [f"in {item.inside}"] if item.inside else []
            text += [_clipped(f"{indent}{link}".rstrip()) for link in chain]
            if item.thread is not None:
                who = f"thread {_triple(item.thread)}"
                if item.block is not None and item.block != block:
                    who += f" of block {_triple(item.block)}"
                    block = item.block
                text.append(f"{indent}{who}")
        for note in self.notes:
            text += textwrap.wrap(note, _COLUMNS, initial_indent="  ", subsequent_indent="    ")
        if self.cure:
            text += _paragraph(f"cure  {self.cure}")
            text += _shown(self.cure.diff)
            if self.cure.proof:
                text += _paragraph(f"      {self.cure.proof}")
        return "\n".join(text)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "message": self.message,
            "space": self.space,
            "variable": self.variable,
            "also": list(self.also),
            "element": self.element,
            "involved": [item.to_dict() for item in self.involved],
            "count": self.count,
            "locations": self.locations,
            "notes": list(self.notes),
            "cure": self.cure.to_dict() if self.cure else None,
            "builds": list(self.builds),
        }


def _clipped(line: str) -> str:
    return line if len(line) <= _COLUMNS else line[: _COLUMNS - 3] + "..."


def _triple(t: Triple) -> str:
    return f"({t[0]},{t[1]},{t[2]})"


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, _COLUMNS, initial_indent="  ", subsequent_indent="        ")


def _shown(diff: str) -> list[str]:
    """The changed lines of a diff and those around them, cut to the width.

    Of a long line that changed, the part is shown that did.
    """
    lines = [plain(line.expandtabs(4)) for line in diff.splitlines()[2:]]
    width, shown = _COLUMNS - 8, []
    for line, before, after in zip(lines, ["", *lines], [*lines[1:], ""], strict=False):
        other = after if line[:1] == "-" else before
        if len(line) > width and {line[:1], other[:1]} == {"-", "+"}:
            pairs = zip(line[1:], other[1:], strict=False)
            start = sum(1 for _ in itertools.takewhile(lambda p: p[0] == p[1], pairs)) - width // 3
            line = f"{line[0]}...{line[1 + start :]}" if start > 3 else line
        shown.append(f"        {line}" if len(line) <= width else f"        {line[: width - 3]}...")
    return shown

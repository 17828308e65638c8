"""Parts of a hazard: source lines, participating instructions, and the fix."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import NamedTuple

from kernels.source.source_edit import INSTEAD, Edit
from kernels.source_access import display_path

Triple = tuple[int, int, int]
VERBS = {"load": "read", "store": "write", "atomic": "atomic access"}
ROLES = {"load": "read", "store": "write", "atomic": "atomic"}
"""What an access does, and what its part in a hazard is called."""


@dataclass(frozen=True)
class Source:
    """A source line: path, number from 1 (0: unknown), and its code."""

    file: str
    line: int
    code: str = ""

    def __str__(self) -> str:
        shown = display_path(self.file)
        return f"{shown}:{self.line}" if self.line else shown

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return {"file": self.file, "line": self.line, "code": self.code}


class Opponent(NamedTuple):
    """The thread that a participant races with, where the report does not list its access.

    Attributes:
        role: Role of its access.
        thread: Its index, x first.
        block: Index of its block, x first.
    """

    role: str
    thread: Triple
    block: Triple


@dataclass(frozen=True)
class Participant:
    """An instruction that takes part in a hazard, with an example thread.

    Attributes:
        role: ``read``, ``write``, ``atomic``, ``waits``, ``missing`` ...
        instruction: Its PTX opcode.
        ptx_line: Its line in the PTX text.
        thread: Index of an example thread, x first.
        block: Index of that thread's block, x first.
        calls: Call sites that led to the source line, innermost first.
        also: Other call sites of the function that contains ``source``.
        inside: Its line in a toolkit header, if ``source`` calls one.
        element: Of a race: the element that the example thread accesses, such as ``tile[3][0]``.
        value: Of a race: the value that it stores or finds there, if known.
        opponent: Of a race: the other thread of its pair, if it is no other participant's thread.
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
    element: str = ""
    value: str = ""
    opponent: Opponent | None = None

    def called(self, *calls: Source) -> Participant:
        """Return the participant with further call sites of the same function."""
        known = dict.fromkeys((*self.calls[:1], *self.also))
        new = tuple(call for call in dict.fromkeys(calls) if self.calls and call not in known)
        return dataclasses.replace(self, also=(*self.also, *new)) if new else self

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return {
            "role": self.role,
            **self.source.to_dict(),
            "instruction": self.instruction,
            "ptx_line": self.ptx_line,
            "thread": self.thread,
            "block": self.block,
            "calls": [source.to_dict() for source in self.calls],
            "also_called": [source.to_dict() for source in self.also],
            "inside": self.inside.to_dict() if self.inside else None,
            "element": self.element or None,
            "value": self.value or None,
            "opponent": self.opponent._asdict() if self.opponent else None,
        }


@dataclass(frozen=True)
class Fix:
    """An edit that removes the hazard, verified by compiling and running the edited source.

    Attributes:
        source: The source line at which the edit is reported.
        ptx_lines: For kernels without a source: the PTX lines before which a barrier was inserted
            (several if the loop is unrolled).
        errors_left: Errors of the run with this edit, none of them new (JSON ``left``).
        together: Errors that remain with the fixes of the other races as well; ``None`` if there
            are none, or no error remains anyway.
        where: Position of the text: ``before`` or ``after`` the line, ``split by`` (the statement
            on the line is split), ``for ... on`` the line, or ``instead of`` a statement.
        text: The inserted text.
        how: Further words on the position, printed after the line number.
        diff: The edit as a unified diff; empty for PTX.
        proof: Builds, schedules and launch shapes in which it was verified.
        edit: The edit that ``tilescope check --fix`` applies.
        group: Number of the edit; hazards of a launch with one number share one edit.
    """

    source: Source
    ptx_lines: tuple[int, ...] = ()
    errors_left: int = 0
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
        """Line number, from 1, before or after which the text goes; 0 for PTX without lines."""
        return self.source.line

    @property
    def places(self) -> list[tuple[int, str]]:
        """Every edited line with the position of the text."""
        return [(self.line, self.where), *(self.edit.also if self.edit else ())]

    def __str__(self) -> str:
        errors = "error" if self.errors_left == 1 else "errors"
        place = f"line {self.line}" if self.line else str(self.source)
        text = f"{self.text.rstrip(';')} {self.where} {place}{self.how}"
        if self.where == "split by":
            text = f"{self.text.rstrip(';')} splits {self._split(place)}{self.how}"
        if self.where == INSTEAD:
            text = f"{self.text.rstrip(';')} instead of the statement on {place}"
        text += f": verified, {self.errors_left} {errors} left"
        return text if self.together is None else f"{text}, {self.together} with the other fixes"

    def _split(self, place: str) -> str:
        """Name the statements that are split, and further places of the text."""
        lines = [line for line, where in self.places if where == self.where]
        text = f"the statement on {place}"
        if len(lines) > 1:
            text = f"the statements on lines {', '.join(map(str, lines[:-1]))} and {lines[-1]}"
        return text + "".join(
            f", and stands {where} line {line}"
            for line, where in self.places
            if where != self.where
        )

    def to_dict(self) -> dict[str, object]:
        """JSON-ready."""
        return {
            "file": self.source.file,
            "after_line": self.line if self.where == "after" else max(self.line - 1, 0),
            "line": self.line,
            "where": self.where,
            "places": [{"line": line, "where": where} for line, where in self.places],
            "text": self.text,
            "diff": self.diff,
            "verified": self.proof,
            "group": self.group,
            "left": self.errors_left,
            "left_with_other_fixes": self.together,
        }

"""Hazards: what is wrong with a kernel, where, and an example of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SEVERITIES = {
    "raw-race": "error", "war-race": "error", "waw-race": "error",
    "barrier-divergence": "error", "deadlock": "error",
    "out-of-bounds": "error", "misaligned": "error", "read-only": "error",
    "address-space": "error", "uninitialised": "error", "bad-mask": "error",
    "assert": "error", "trap": "error",
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


@dataclass
class Hazard:
    """One finding.

    Attributes:
        kind: A key of ``SEVERITIES``.
        message: The finding in a sentence.
        severity: ``error`` or ``warning``.
        space: State space, or ``""``.
        variable: Array or variable name, if known.
        element: Index of the element (by the access's element size), if known.
        sources: The source lines involved, the offending one first.
        instructions: PTX text of the instructions involved.
        thread: An example thread ``(x, y, z)`` and its ``block``.
        count: How many thread accesses did it.
    """

    kind: str
    message: str
    severity: str = "error"
    space: str = ""
    variable: str = ""
    element: int | None = None
    sources: tuple[Source, ...] = ()
    instructions: tuple[str, ...] = ()
    thread: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    count: int = 1
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def lines(self) -> tuple[int, ...]:
        """The source line numbers involved."""
        return tuple(s.line for s in self.sources if s.line)

    def __str__(self) -> str:
        text = [f"{self.severity}: {self.message}"]
        for source, ptx in zip(self.sources, self.instructions, strict=False):
            text.append(f"  {source}  {source.code or ptx}".rstrip())
        if self.thread is not None:
            who = f"  thread {_triple(self.thread)} of block {_triple(self.block or (0, 0, 0))}"
            text.append(who + (f"; {self.count:,} accesses in all" if self.count > 1 else ""))
        return "\n".join(text)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "message": self.message,
            "space": self.space,
            "variable": self.variable,
            "element": self.element,
            "sources": [{"file": s.file, "line": s.line, "code": s.code} for s in self.sources],
            "instructions": list(self.instructions),
            "thread": self.thread,
            "block": self.block,
            "count": self.count,
        }


def _triple(t: tuple[int, int, int]) -> str:
    return f"({t[0]},{t[1]},{t[2]})"

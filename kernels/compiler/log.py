"""NVRTC's log as messages, each with its place."""

import re
from dataclasses import dataclass

from ..source_access import plain

_SAID = re.compile(
    r"(?:(?P<path>\S.*)\((?P<line>\d+)\)|At end of source): "
    r"(?P<kind>catastrophic error|error|warning|remark)"
)
_CLOSING = re.compile(r"\d+ .*errors? detected|Remark:|Compilation terminated|Error limit reached")
_MISSING = re.compile(r'cannot open source file "([^"]+)"')
_LITERAL = re.compile(r"\(\s*(?:struct\s+)?[A-Za-z_][\w:<>, ]*\)\s*\{")
_OF_GNU = "(P){...} is taken by nvcc, but not by NVRTC: write P{...}, or run the .ptx of nvcc"
"""What is said of a literal of GNU's C++ in the line of an error."""
_DESIGNATED = re.compile(r"(?:^|[{,])\s*\.\s*[A-Za-z_]\w*\s*[={]")
_OF_CXX20 = "(.member = ... in braces is of C++20: --option=-std=c++20)"
"""What is said of designated initialisers, which nvcc takes from GNU's C++ of any year."""
_NAMES = "__nv_name_map"
"""The file in which NVRTC looks up the names of kernels."""


@dataclass(frozen=True)
class Message:
    """An error of the log.

    Attributes:
        path: The file that it is in; ``line`` from 1, ``column`` from 0 where it is marked. Empty
            and 0 of what is missing at the end.
        text: All of it, source line included.
    """

    path: str
    line: int
    column: int | None
    text: str

    @property
    def of_a_name(self) -> bool:
        """Whether it is about the kernel's name and not about the source."""
        return self.path == _NAMES

    @property
    def missing_header(self) -> str:
        """The header that was not found; ``""`` if it is about something else."""
        found = _MISSING.search(self.text)
        return found[1] if found else ""


def errors(log: str) -> list[Message]:
    """Return the errors of a log, without warnings, remarks and sums."""
    blocks: list[list[str]] = []
    for line in log.splitlines():
        if _SAID.match(line) or _CLOSING.match(line) or (blocks and not blocks[-1]):
            blocks.append([])
        if not _CLOSING.match(line) and line.strip() and blocks:
            blocks[-1].append(line)
    found = []
    for block in blocks:
        said = _SAID.match(block[0]) if block else None
        if said and said["kind"] not in ("warning", "remark"):
            mark = next((b.index("^") for b in block[1:] if b.strip() == "^"), None)
            column = mark - 2 if mark is not None else None  # source lines are indented by two
            at = int(said["line"] or 0)
            if "expected an expression" in block[0] and any(map(_LITERAL.search, block[1:])):
                block.append(_OF_GNU)
            if "expected an expression" in block[0] and any(map(_DESIGNATED.search, block[1:])):
                block.append(_OF_CXX20)
            found.append(Message(said["path"] or "", at, column, plain("\n".join(block))))
    return found

"""Lines of a source file, as bytes: where they begin and end, and how they are indented."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node


def node_end(content: bytes, node: Node) -> int:
    """Return the end of a node, without the line end that directives include."""
    return node.start_byte + len(content[node.start_byte : node.end_byte].rstrip())


def line_end(content: bytes, offset: int) -> int:
    """Return the end of a byte's line, without its line end."""
    found = re.compile(rb"[\r\n]").search(content, offset)
    return found.start() if found else len(content)


def ends_line(content: bytes, offset: int) -> bool:
    """Whether only a comment follows on the line."""
    rest = content[offset : line_end(content, offset)]
    return re.fullmatch(rb"\s*(/\*([^*]|\*(?!/))*\*/\s*)*(//.*(?<!\\))?", rest) is not None


def begins_line(content: bytes, offset: int) -> bool:
    """Whether only white space precedes on the line."""
    return (content[:offset] + b"x").splitlines()[-1].strip() == b"x"


def indent_at(content: bytes, offset: int) -> bytes:
    """Return the white space that the line of a byte begins with."""
    line = (content[:offset] + b"x").splitlines()[-1]
    return line[: len(line) - len(line.lstrip())]


def newline_at(content: bytes, offset: int) -> bytes:
    """Return the line end in use here: that of this line, or of the line before it."""
    found = re.compile(rb"\r\n|\n|\r").search(content, offset)
    if found:
        return found[0]
    newlines = re.findall(rb"\r\n|\n|\r", content)
    return newlines[-1] if newlines else b"\n"


def column_of(content: bytes, offset: int) -> str:
    """Return the column of a byte, from 1, as it follows a line's number."""
    return f", column {len((content[:offset] + b'x').splitlines()[-1])}"

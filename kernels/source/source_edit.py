"""Edits of a source file: bytes replaced at some places, shown as a diff."""

import dataclasses
import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

INSTEAD = "instead of"
"""What ``Edit.where`` says where the text takes the place of the line's statement."""
Piece = tuple[int, int, bytes]
"""First byte, end, and what to put there instead."""


@dataclass(frozen=True)
class Edit:
    """A small edit of one file.

    Attributes:
        file: Its real path.
        pieces: What is replaced, in the order of the file.
        line: The line, from 1, that the text goes ``before`` or ``after``, or whose statement
            is ``split by`` it, or that it stands ``instead of``.
        text: What is put there.
        how: What the place alone does not say.
        also: Further places where text is put, as ``line`` and ``where``.
        content: What the file held when the edit was made.
    """

    file: Path
    pieces: tuple[Piece, ...]
    line: int
    where: str
    text: str
    how: str = ""
    also: tuple[tuple[int, str], ...] = ()
    content: bytes = field(default=b"", repr=False)


def joined(one: Edit, other: Edit) -> Edit | None:
    """Return two edits of a file as one; ``None`` if they are of the same place."""
    low, high = sorted((one, other), key=lambda edit: edit.pieces)
    starts = {piece[0] for piece in one.pieces}
    if one.file != other.file or starts & {piece[0] for piece in other.pieces}:
        return None
    pieces = tuple(sorted(low.pieces + high.pieces))
    how = f"{low.how} and {high.where} line {high.line}{high.how}"
    also = (*low.also, (high.line, high.where), *high.also)
    return dataclasses.replace(low, pieces=pieces, how=how, also=also)


def with_text(edit: Edit, text: str) -> Edit:
    """Return the edit with another text."""
    old, new = edit.text.encode(), text.encode()
    pieces = tuple((start, end, put.replace(old, new, 1)) for start, end, put in edit.pieces)
    return dataclasses.replace(edit, pieces=pieces, text=text)


def without_one(edit: Edit) -> list[Edit]:
    """Return the edits with one of several insertions of a piece omitted, in turn."""
    (start, end, put), *others = edit.pieces
    text = edit.text.encode()
    if others or put.count(text) < 2:
        return []
    places = [at.span() for at in re.finditer(rb"\s*" + re.escape(text), put)]
    return [
        dataclasses.replace(edit, pieces=((start, end, put[:first] + put[last:]),))
        for first, last in places
    ]


def applied(content: bytes, edits: Iterable[Edit]) -> bytes:
    """Return a file's content after some edits of it.

    Raises:
        ValueError: Two edits replace the same bytes.
    """
    return b"".join(text for text, _, _ in _segments(content, edits))


def old_lines(content: bytes, edits: Iterable[Edit]) -> list[int]:
    """Return, for each line of the edited file, the line (from 1) that it comes from."""
    made = [1]
    for text, start, copied in _segments(content, edits):
        line = line_of(content, start)
        made += [line + (i if copied else 0) for i in range(1, line_of(text, len(text)))]
    return made


def line_of(content: bytes, offset: int) -> int:
    """Return the line, from 1, that a byte stands in."""
    return len((content[:offset] + b"x").splitlines())


def diff(content: bytes, edits: Sequence[Edit], name: str, context: int = 3) -> bytes:
    """Return a unified diff of the edits of one file, in the file's own encoding."""
    before = content.splitlines(keepends=True)
    after = applied(content, edits).splitlines(keepends=True)
    labels = (name, name) if name.startswith("/") else (f"a/{name}", f"b/{name}")
    old, new = (label.encode() for label in labels)
    lines = difflib.diff_bytes(
        difflib.unified_diff, before, after, old, new, b"", b"", context, b"\n"
    )  # fmt: skip
    ended = (
        line if line.endswith((b"\n", b"\r")) else line + b"\n\\ No newline at end of file\n"
        for line in lines
    )  # fmt: skip
    return b"".join(ended)


def decoded(content: bytes) -> str:
    """Return text to show: UTF-8, or Latin-1 where it is not that."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _segments(content: bytes, edits: Iterable[Edit]) -> Iterator[tuple[bytes, int, bool]]:
    """Yield the segments of the edited file: text, original offset, and whether it is original."""
    at = 0
    for start, end, text in sorted((p for e in edits for p in e.pieces), key=lambda p: p[:2]):
        if start < at:
            raise ValueError("two edits of the same bytes")
        yield content[at:start], at, True
        yield text, start, False
        at = end
    yield content[at:], at, True

"""Separation of host code from a CUDA source, so that NVRTC sees device code only.

``nvcc`` compiles a file twice, NVRTC only for the device; it rejects ``main``, launches with
``<<<>>>`` and the C++ library. The source is parsed into *pieces*: declarations outside of any
braces, and methods, friends and static members of classes. Certain host code is removed at once.
Other pieces are removed only if the compiler rejects them and no device code mentions them.
Directives and line numbers are preserved.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ..source.instantiations import Instantiations
from ..source.preprocessor import KEYWORDS, VARIANTS, Macros, blank, directives, readable
from ..source.removable_declarations import RemovableDeclaration, pieces_of
from ..source.syntax import parse

MARKS = frozenset(
    ["__global__", "__device__", "__constant__", "__shared__", "__managed__", "constexpr",
     "consteval"]
)  # fmt: skip
"""Words that make a declaration one for the device, or for both sides."""

_WORD = re.compile(r"[A-Za-z_]\w*")
_TEMPLATE = re.compile(r"\s*template\s*<(?:[^<>]|<[^<>]*>)*>")


@dataclass
class SourceFile:
    """A file in pieces, and what was cut from it.

    Attributes:
        path: As the compiler names it in messages.
    """

    path: str
    text: str
    pieces: list[RemovableDeclaration] = field(default_factory=list)
    cuts: dict[RemovableDeclaration, tuple[int, int, str]] = field(default_factory=dict)

    def cut(self, piece: RemovableDeclaration) -> bool:
        """Take a piece out: of a method first its body. Says whether there was more to take."""
        at = self.cuts.get(piece)
        if at is None and piece.method and piece.kind == "function" and piece.body < piece.end:
            self.cuts[piece] = (piece.body, piece.end, ";")
        elif at is None or at[0] != piece.start:
            self.cuts[piece] = (piece.start, piece.end, "")
        else:
            return False
        return True

    def rest(self) -> str:
        """Return the text without what was cut."""
        directive_ranges = directives(self.text)
        text = self.text
        for start, end, instead in self.cuts.values():
            text = blank(text, start, end, directive_ranges)
            text = text[:start] + instead + text[start + len(instead) :]
        return text

    def at(self, line: int, column: int | None) -> list[RemovableDeclaration]:
        """Return the pieces that a place belongs to, the innermost first."""
        starts = [0, *(m.end() for m in re.finditer("\n", self.text))]
        if not 1 <= line <= len(starts):
            return []
        low, high = [*starts, len(self.text)][line - 1 : line + 1]
        if column is not None and low + column < high:
            low, high = low + column, low + column + 1
        found = [p for p in self.pieces if p.start < high and p.end > low]
        return sorted(found, key=lambda p: p.end - p.start)


def read(path: str, text: str, macros: Macros) -> SourceFile:
    """Parse a file; what no parse makes sense of is in no piece, and stays."""
    found, marks, instances = list[RemovableDeclaration](), macros.marks, Instantiations(macros)
    for variant in VARIANTS:
        plain, bare, outside, calls = readable(text, macros, variant)
        tree = parse(plain.encode("ascii", "replace"))
        inside = [(body, end) for _, body, end in outside if body < end]
        where = plain, bare, [end for _, end in calls]
        made = [_with_macros(p, *where) for p in pieces_of(tree.root_node, plain, bare, macros)]
        made = [_to_its_brace(p, bare, inside) for p in made]
        lost = [not p.method and any(a < p.start < b for a, b in inside) for p in made]
        found += [p for p, out in zip(made, lost, strict=True) if not (out or _known(p, found))]
        for start, end in calls:
            _, words = _words(bare, start, end, end)
            names = instances.of(bare[start:end])
            kind, device = "instance" if names else "other", not words.isdisjoint(marks)
            call = RemovableDeclaration(kind, start, end, end, names, words, device)
            found += [] if _known(call, found) else [call]
        for start, body, end in outside:  # where the grammar fails, braces still tell something
            here = text if bare[start].isspace() else bare
            names, words = _words(here, start, body, end)
            device = not marks.isdisjoint(names or words)
            made_by_macro = instances.of(here[start:end]) if start == body else frozenset()
            kind = "instance" if made_by_macro else _kind_of(here[start:body])
            unread = RemovableDeclaration(
                kind, start, body, end, names | made_by_macro, words, device
            )
            if body < end and not _known(unread, found):
                found.append(_with_macros(unread, *where))
    return SourceFile(path, text, found)


def _with_macros(
    piece: RemovableDeclaration, plain: str, bare: str, macro_ends: Collection[int]
) -> RemovableDeclaration:
    """Return a piece with what no parser sees before it, macros of qualifiers and attributes.

    Left behind they would belong to what follows. ``ends``: ends of other macros.
    """
    start = at = piece.start
    while at and plain[at - 1].isspace() and at not in macro_ends:
        at -= 1
        start = start if bare[at].isspace() else at
    return replace(piece, start=start)


def _to_its_brace(
    piece: RemovableDeclaration, bare: str, inside: Sequence[tuple[int, int]]
) -> RemovableDeclaration:
    """Return a function up to its closing brace, which the grammar may miss."""
    braces = [end for body, end in inside if piece.start < body < piece.end < end]
    if piece.method or piece.kind != "function" or not braces:
        return piece
    return replace(piece, end=braces[0], words=_words(bare, piece.start, braces[0], braces[0])[1])


def _known(at: RemovableDeclaration, found: Sequence[RemovableDeclaration]) -> bool:
    """Whether it overlaps what another reading of the text gave."""
    return any(p.start < at.end and at.start < p.end and p.method == at.method for p in found)


def _words(bare: str, start: int, body: int, end: int) -> tuple[frozenset[str], frozenset[str]]:
    named, words = (frozenset(_WORD.findall(bare[start:to])) for to in (body, end))
    return named - KEYWORDS, words


def _kind_of(head: str) -> str:
    """Return the kind of what the grammar does not read, by what stands before its braces."""
    word = _TEMPLATE.sub("", head, count=1).split(None, 1)[:1]
    if word and word[0] in ("class", "struct", "union", "enum", "template", "typedef"):
        return "type"
    return "function" if "(" in head and "=" not in head.split("(")[0] else "other"


def cut_host_code(files: Sequence[SourceFile]) -> None:
    """Cut what is the host's without any doubt."""
    for file in files:
        for piece in [piece for piece in file.pieces if piece.host]:
            file.cut(piece)


class RequiredNames(NamedTuple):
    """Names that have to stay.

    Attributes:
        by_device: That code for the device mentions, itself or through what it mentions.
        by_entry: That the kernel does which is asked for.
    """

    by_device: frozenset[str]
    by_entry: frozenset[str]


def needed_names(files: Sequence[SourceFile], entry: str, macros: Macros) -> RequiredNames:
    """Return the names on which a kernel and all device code depend."""
    pieces = [p for file in files for p in file.pieces if not p.method and not p.host]
    asked = frozenset(_WORD.findall(entry))
    device = asked.union(*(p.words for p in pieces if p.device and not p.constexpr))
    named = [p for p in pieces if p.device or p.kind in ("type", "name", "using", "variable")]
    return RequiredNames(*(_reached(start, named, macros) for start in (device, asked)))


def _reached(
    start: frozenset[str], pieces: Sequence[RemovableDeclaration], macros: Macros
) -> frozenset[str]:
    """Return names and all that their pieces and macros mention, transitively."""
    reached, size = set(start), -1
    while size != len(reached):
        size = len(reached)
        for name, macro in macros.items():
            if name in reached:
                reached |= set(_WORD.findall(macro.body))
        for piece in pieces:
            if piece.names & reached:
                reached |= piece.words
    return frozenset(reached)


def names_cut(files: Iterable[SourceFile]) -> frozenset[str]:
    """Return the names declared by the removed pieces."""
    return frozenset().union(*(piece.names for file in files for piece in file.cuts))


def may_go(
    piece: RemovableDeclaration, needed: RequiredNames, gone: frozenset[str], lacking: bool
) -> bool:
    """Whether a piece that the compiler refuses may go: it is the host's, or another kernel's.

    ``gone``: names of what was cut; ``lacking``: whether headers are not there, so that the other
    kernel may be right.
    """
    if piece.device and not (piece.constexpr and piece.names.isdisjoint(needed.by_device)):
        function = piece.kind in ("function", "prototype", "instance")
        return lacking and function and bool(piece.names) and not piece.names & needed.by_entry
    if piece.kind == "using":  # where it is refused, it gives no name to what stays
        return needed.by_device.isdisjoint(piece.names - gone)
    defines = piece.kind not in ("function", "prototype", "instance") and not piece.method
    return not (defines and piece.names & needed.by_device)

"""What of a CUDA source belongs to the host, so that NVRTC sees what runs on the GPU.

``nvcc`` compiles a file twice, NVRTC only for the device; ``main``, launches with ``<<<>>>``
and the C++ library are nothing to it. The source is parsed into *pieces*: what stands outside
of any braces, and the methods of classes. Surely host code is cut at once, other pieces only
when the compiler refuses them and nothing that runs on the device mentions them. Directives
always stay, and lines keep their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from .preprocessor import KEYWORDS, VARIANTS, Macros, blank, directives, readable
from .syntax import parse

if TYPE_CHECKING:
    from tree_sitter import Node

MARKS = frozenset(
    ["__global__", "__device__", "__constant__", "__shared__", "__managed__", "constexpr",
     "consteval"]
)  # fmt: skip
"""Words that make a declaration one for the device, or for both sides."""

_KINDS = {"template_instantiation": "instance", "expression_statement": "other"}
_TYPES = ("class_specifier", "struct_specifier", "union_specifier", "enum_specifier")
_NAMES = (
    "type_definition", "alias_declaration", "using_declaration", "namespace_alias_definition",
    "concept_definition", "static_assert_declaration",
)  # fmt: skip
_IDENTIFIERS = ("identifier", "type_identifier", "field_identifier", "namespace_identifier")
_WORD = re.compile(r"[A-Za-z_]\w*")
_TEMPLATE = re.compile(r"\s*template\s*<(?:[^<>]|<[^<>]*>)*>")


@dataclass(eq=False)
class Piece:
    """A declaration or definition.

    Attributes:
        kind: ``function``, ``prototype``, ``instance``, ``variable``, ``type``, ``name`` or else.
        start, body, end: Offsets in the text; ``body`` is ``end`` where there are no braces.
        names: What it declares; ``words``: every identifier in it.
        device: Whether it is marked for the device.
        constant: Of a variable: whether device code may use it all the same.
        method: Whether it stands in a class.
    """

    kind: str
    start: int
    body: int
    end: int
    names: frozenset[str]
    words: frozenset[str]
    device: bool
    constant: bool = False
    method: bool = False

    @property
    def host(self) -> bool:
        """Whether it is the host's without any doubt."""
        defined = self.kind == "function" and self.body < self.end
        variable = self.kind == "variable" and not self.constant
        return (defined or variable) and not (self.device or self.method)


@dataclass
class SourceFile:
    """A file in pieces, and what was cut from it.

    Attributes:
        path: As the compiler names it in messages.
    """

    path: str
    text: str
    pieces: list[Piece] = field(default_factory=list)
    cuts: dict[Piece, tuple[int, int, str]] = field(default_factory=dict)

    def cut(self, piece: Piece) -> bool:
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
        """The text without what was cut."""
        kept = directives(self.text)
        text = self.text
        for start, end, instead in self.cuts.values():
            text = blank(text, start, end, kept)
            text = text[:start] + instead + text[start + len(instead) :]
        return text

    def at(self, line: int, column: int | None) -> list[Piece]:
        """The pieces that a place belongs to, the innermost first."""
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
    found, marks = list[Piece](), macros.marks
    for variant in VARIANTS:
        plain, bare, outside, calls = readable(text, macros, variant)
        tree = parse(plain.encode("ascii", "replace"))
        inside = [(body, end) for _, body, end in outside if body < end]
        for piece in _pieces(tree.root_node, plain, bare, macros):
            lost = not piece.method and any(a < piece.start < b for a, b in inside)
            if not lost and not _known(piece, found):
                found.append(piece)
        for start, end in calls:
            _, words = _words(bare, start, end, end)
            call = Piece("other", start, end, end, frozenset(), words, not words.isdisjoint(marks))
            found += [] if _known(call, found) else [call]
        for start, body, end in outside:  # where the grammar fails, braces still tell something
            here = text if bare[start].isspace() else bare
            names, words = _words(here, start, body, end)
            device = not marks.isdisjoint(names or words)
            unread = Piece(_kind_of(here[start:body]), start, body, end, names, words, device)
            if body < end and not _known(unread, found):
                found.append(unread)
    return SourceFile(path, text, found)


def _known(at: Piece, found: Sequence[Piece]) -> bool:
    """Whether it overlaps what another reading of the text gave."""
    return any(p.start < at.end and at.start < p.end and p.method == at.method for p in found)


def _words(bare: str, start: int, body: int, end: int) -> tuple[frozenset[str], frozenset[str]]:
    named, words = (frozenset(_WORD.findall(bare[start:to])) for to in (body, end))
    return named - KEYWORDS, words


def _kind_of(head: str) -> str:
    """The kind of what the grammar does not read, by what stands before its braces."""
    word = _TEMPLATE.sub("", head, count=1).split(None, 1)[:1]
    if word and word[0] in ("class", "struct", "union", "enum", "template", "typedef"):
        return "type"
    return "function" if "(" in head and "=" not in head.split("(")[0] else "other"


def cut_host_code(files: Sequence[SourceFile]) -> None:
    """Cut what is the host's without any doubt."""
    for file in files:
        for piece in [piece for piece in file.pieces if piece.host]:
            file.cut(piece)


class Needed(NamedTuple):
    """Names that have to stay.

    Attributes:
        by_device: That code for the device mentions, itself or through what it mentions.
        by_entry: That the kernel does which is asked for.
    """

    by_device: frozenset[str]
    by_entry: frozenset[str]


def needed_names(files: Sequence[SourceFile], entry: str, macros: Macros) -> Needed:
    """What a kernel, and all code for the device, has to do with."""
    pieces = [p for file in files for p in file.pieces if not p.method and not p.host]
    asked = frozenset(_WORD.findall(entry))
    device = asked.union(*(p.words for p in pieces if p.device))
    named = [p for p in pieces if p.device or p.kind in ("type", "name", "variable")]
    return Needed(*(_reached(start, named, macros) for start in (device, asked)))


def _reached(start: frozenset[str], pieces: Sequence[Piece], macros: Macros) -> frozenset[str]:
    """The names, and what is mentioned by the pieces and macros of those names, and so on."""
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


def may_go(piece: Piece, needed: Needed, lacking: bool) -> bool:
    """Whether a piece that the compiler refuses may go: it is the host's, or another kernel's.

    ``lacking``: whether headers are not there, so that the other kernel may be right.
    """
    if piece.device:
        function = piece.kind in ("function", "prototype")
        return lacking and function and bool(piece.names) and not piece.names & needed.by_entry
    defines = piece.kind not in ("function", "prototype", "instance")
    return not (defines and piece.names & needed.by_device)


def _pieces(node: Node, text: str, bare: str, macros: Macros) -> Iterator[Piece]:
    before = node.start_byte if node.parent else 0  # a tree begins at its first word
    for child in node.children:
        if child.type in ("namespace_definition", "linkage_specification"):
            body = child.child_by_field_name("body")
            if body is not None and body.type == "declaration_list":
                yield from _pieces(body, text, bare, macros)
            elif body is not None:
                yield from _piece(body, child.start_byte, before, child.end_byte, bare, macros)
        elif child.type in ("ERROR", "declaration_list"):
            yield from _pieces(child, text, bare, macros)
        else:
            yield from _piece(child, child.start_byte, before, child.end_byte, bare, macros)
        before = child.end_byte


def _piece(
    node: Node, start: int, before: int, end: int, bare: str, macros: Macros, method: bool = False
) -> Iterator[Piece]:
    """The piece that a node is, and the methods in it; nothing for other nodes."""
    inner = node
    while inner.type == "template_declaration" and inner.named_children:
        inner = inner.named_children[-1]
    kind = _kind(inner, bare)
    if not kind or (method and kind not in ("function", "prototype")):
        return  # without a member a class would be another one
    block = inner.child_by_field_name("body") if kind == "function" else None
    lists = [c for c in inner.children if c.type == "field_initializer_list"]
    body = lists[0].start_byte if lists else block.start_byte if block else end
    head = bare[before:body] if kind == "function" else bare[before:end]
    words = frozenset(_WORD.findall(bare[start:end]))
    yield Piece(
        kind, start, body, end, _names(inner), words,
        not macros.marks.isdisjoint(_WORD.findall(head)),
        bool(re.search(r"\b(const|extern|template)\b", head)), method,
    )  # fmt: skip
    for holder in _descend(inner, "field_declaration_list"):
        last = holder.start_byte
        for child in holder.named_children:
            yield from _piece(child, child.start_byte, last, child.end_byte, bare, macros, True)
            last = child.end_byte


def _kind(node: Node, bare: str) -> str:
    if node.type == "function_definition":
        word = bare[node.start_byte : node.end_byte].split(None, 1)[:1]
        return "type" if word and word[0] in ("class", "struct", "union", "enum") else "function"
    if node.type in ("declaration", "field_declaration"):
        if next(_descend(node, "field_declaration_list"), None) is not None:
            return "type"
        declarator = node.child_by_field_name("declarator")
        while declarator is not None and declarator.type != "function_declarator":
            declarator = declarator.child_by_field_name("declarator")
        return "prototype" if declarator is not None else "variable"
    if node.type in _TYPES:
        return "type"
    if node.type in _NAMES:
        return "name"
    return _KINDS.get(node.type, "")


def _descend(node: Node, kind: str) -> Iterator[Node]:
    """Nodes of a kind below one, not those in others or in function bodies."""
    for child in node.children:
        if child.type == kind:
            yield child
        elif child.type not in ("compound_statement", "field_declaration_list"):
            yield from _descend(child, kind)


def _names(node: Node) -> frozenset[str]:
    """What a node declares; rather too many names than too few."""
    found: set[str] = set()
    if node.type in _NAMES:
        waiting = [node]
    else:
        waiting = [*node.children_by_field_name("declarator")]
        for holder in (node, *(node.children_by_field_name("type"))):
            waiting += holder.children_by_field_name("name")
        waiting += list(_descend(node, "enumerator_list"))
    while waiting:
        at = waiting.pop()
        if at.type in _IDENTIFIERS and at.text:
            found.add(at.text.decode())
        if at.type not in ("parameter_list", "compound_statement", "template_argument_list"):
            value = at.child_by_field_name("value")
            waiting += [child for child in at.children if child != value]
    return frozenset(found)

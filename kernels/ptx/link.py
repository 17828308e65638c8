"""``link``: PTX texts of several translation units joined to one, by symbol.

What ``nvcc -rdc=true`` leaves to the device linker: declarations with ``.extern`` meet the one
``.visible`` or ``.weak`` definition of their name; names without linkage are a unit's own.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..errors import PtxError
from .header import strip_comments
from .lexer import Token, tokens

_LINKAGE = (".extern", ".visible", ".weak", ".common")
_FUNCTIONS = (".func", ".entry")
_SPACES = (".global", ".const", ".shared", ".tex")
_INFO = "$L__info_string"
_STRINGS = ".debug_str"
_NAME = re.compile(r"[A-Za-z_$%][\w$]*\Z")


@dataclass
class _UnitStatement:
    """A statement of a unit's module scope.

    Attributes:
        unit: Number of its unit.
        tokens: Its tokens, whose places are those in the unit's text.
        end: Behind its last character.
        linkage: Its linkage directive, or nothing.
        kind: ``.func``, ``.entry``, a state space, or a directive.
        name: The name that it declares.
        is_definition: Whether it has a body, or is a variable that is not external.
    """

    unit: int
    tokens: Sequence[Token]
    end: int
    linkage: str
    kind: str
    name: str
    is_definition: bool

    @property
    def is_function(self) -> bool:
        """Whether it declares or defines a function or kernel."""
        return self.kind in _FUNCTIONS


class LinkError(PtxError):
    """Units that do not fit together."""


def link(texts: Sequence[str]) -> str:
    """Join PTX texts to one.

    A text without kernels is joined if it defines what another one leaves open, as an archive's
    member is.

    Args:
        texts: Of the units, each a whole module.

    Raises:
        PtxError: A text cannot be read.
        LinkError: A symbol is defined twice.
    """
    plain = [strip_comments(text) for text in texts]
    units = [list(_statements(number, text)) for number, text in enumerate(plain)]
    chosen = [unit for number, unit in enumerate(units) if number in _needed(units)]
    statements = [one for unit in chosen for one in unit]
    defined = _definitions(statements)
    own = _names_of_units(statements)
    writer = _Writer(plain, own)
    parts: dict[str, list[str]] = {"declared": [], "variables": [], "bodies": [], "strings": []}
    declared: set[str] = set()
    for one in statements:
        name = own.get((one.unit, one.name), one.name)
        if one.kind == ".section":
            if one.tokens[1].text == _STRINGS:
                parts["strings"].append(writer.inside_braces(one))
        elif one.is_function and one.is_definition:
            if defined.get(name, one) is one:
                parts["bodies"].append(writer.text(one))
        elif one.is_function:
            if name not in declared:
                declared.add(name)
                found = defined.get(name)
                parts["declared"].append(writer.text(one, found.linkage if found else None))
        elif one.kind in _SPACES:
            if one.is_definition and defined.get(name, one) is one:
                parts["variables"].append(writer.text(one))
            elif not one.is_definition and name not in defined and name not in declared:
                declared.add(name)
                parts["variables"].append(writer.text(one))
        elif one.kind == ".file":
            writer.file(one)
    heading = [*_heading(statements), *writer.files]
    strings = [f".section {_STRINGS}\n{{\n", *parts["strings"], "\n}\n"] if parts["strings"] else []
    body = [*heading, *parts["declared"], *parts["variables"], *parts["bodies"]]
    return "\n".join([*body, "".join(strings)])


# -- reading -------------------------------------------------------------------------------


def _statements(unit: int, text: str) -> Iterator[_UnitStatement]:
    found, at = tokens(text), 0
    while at < len(found):
        stop = _stop(found, at)
        yield _statement(unit, found[at:stop], found[stop].at if stop < len(found) else len(text))
        at = stop


def _stop(found: Sequence[Token], at: int) -> int:
    """Return the number of the token behind a statement."""
    first = found[at].text
    if first in (".version", ".target", ".address_size", ".file"):
        at += 1
        while at < len(found) and not (found[at].kind == "word" and found[at].text.startswith(".")):
            at += 1
        return at
    depth, is_body = 0, False
    is_function = any(one.text in _FUNCTIONS for one in found[at : at + 3])
    while at < len(found):
        token = found[at]
        at += 1
        if token.kind == "string":
            continue
        if token.text in ("(", "[", "{"):
            is_body |= token.text == "{" and not depth and (is_function or first == ".section")
            depth += 1
        elif token.text in (")", "]", "}"):
            depth -= 1
        if not depth and (token.text == ";" or (token.text == "}" and is_body)):
            break
    return at


def _statement(unit: int, part: Sequence[Token], end: int) -> _UnitStatement:
    words = [one.text for one in part]
    linkage = words[0] if words[0] in _LINKAGE else ""
    kind = next((w for w in words[:3] if w in _FUNCTIONS or w in _SPACES), words[0])
    name = ""
    if kind in _FUNCTIONS:
        name = _function_name(words[words.index(kind) + 1 :])
    elif kind in _SPACES:
        name = next((w for w in words if _NAME.match(w)), "")
    is_definition = words[-1] == "}" if kind in _FUNCTIONS else linkage != ".extern"
    return _UnitStatement(unit, part, end, linkage, kind, name, is_definition)


def _function_name(words: list[str]) -> str:
    """Return the name behind ``.func``, its results and attributes."""
    depth = 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if not depth and _NAME.match(word):
            return word
    return ""


# -- symbols -------------------------------------------------------------------------------


def _needed(units: list[list[_UnitStatement]]) -> set[int]:
    """Return the numbers of units with kernels, and of those that define what these lack."""
    needed = {
        number
        for number, unit in enumerate(units)
        if any(one.kind == ".entry" and one.is_definition for one in unit)
    }
    while True:
        chosen = [one for number in needed for one in units[number]]
        open_names = {one.name for one in chosen if one.linkage == ".extern"}
        open_names -= {one.name for one in chosen if one.is_definition}
        more = {
            number
            for number, unit in enumerate(units)
            if any(one.linkage and one.is_definition and one.name in open_names for one in unit)
        } - needed
        if not more:
            return needed
        needed |= more


def _definitions(statements: Iterable[_UnitStatement]) -> dict[str, _UnitStatement]:
    """Return by name the definition that counts.

    Raises:
        LinkError: There are two that are not weak.
    """
    found: dict[str, _UnitStatement] = {}
    for one in statements:
        if not one.linkage or not one.is_definition or not one.name:
            continue
        known = found.get(one.name)
        weak = [".visible" not in (s.linkage,) for s in (known, one) if s is not None]
        if known is None or (weak[0] and not weak[1]):
            found[one.name] = one
        elif not weak[0] and not weak[1]:
            raise LinkError(f"{one.name!r} is defined in two files")
    return found


def _names_of_units(statements: Iterable[_UnitStatement]) -> dict[tuple[int, str], str]:
    """Return new names, by unit and name, for those without linkage that other units have too."""
    owners: dict[str, set[int]] = {}
    own: set[tuple[int, str]] = set()
    for one in statements:
        if one.name:
            owners.setdefault(one.name, set()).add(one.unit)
            if not one.linkage:
                own.add((one.unit, one.name))
    return {(unit, name): f"{name}$unit{unit}" for unit, name in own if len(owners[name]) > 1}


# -- writing -------------------------------------------------------------------------------


def _heading(statements: list[_UnitStatement]) -> Iterator[str]:
    versions = [one.tokens[1].text for one in statements if one.kind == ".version"]
    targets = [one.tokens[1].text for one in statements if one.kind == ".target"]
    if not versions or not targets:
        raise LinkError("no translation unit has kernels")
    yield f".version {max(versions, key=lambda text: [int(n) for n in text.split('.')])}"
    yield f".target {max(targets, key=lambda text: int(re.sub(r'[^0-9]', '', text) or 0))}"
    yield ".address_size 64"


class _Writer:
    """Writes statements with the numbers of files and the names that the whole has."""

    def __init__(self, texts: list[str], own: dict[tuple[int, str], str]) -> None:
        self._texts, self._own = texts, own
        self._numbers: dict[tuple[int, str], int] = {}
        self.files: list[str] = []

    def text(self, one: _UnitStatement, linkage: str | None = None) -> str:
        """Return a statement; ``linkage`` replaces its own, unless it is ``None``."""
        parts, at = [], one.tokens[0].at
        source = self._texts[one.unit]
        for i, token in enumerate(one.tokens):
            new = self._replaced(one, i)
            if i == 0 and linkage is not None and token.text in _LINKAGE:
                new = linkage
            if new is not None:
                parts += [source[at : token.at], new]
                at = token.at + len(token.text)
        return "".join([*parts, source[at : one.end]]).rstrip()

    def _replaced(self, one: _UnitStatement, i: int) -> str | None:
        token = one.tokens[i]
        before = one.tokens[i - 1].text if i else ""
        if token.kind == "int" and before in (".loc", "inlined_at"):
            return str(self._number(one.unit, token.text))
        if token.kind != "word":
            return None
        if token.text.startswith(_INFO):
            return f"{_INFO}_{one.unit}_{token.text.removeprefix(_INFO)}"
        return self._own.get((one.unit, token.text))

    def _number(self, unit: int, number: str) -> int:
        """Return the number of a file in the whole; files may be declared behind their use."""
        return self._numbers.setdefault((unit, number), len(self._numbers) + 1)

    def file(self, one: _UnitStatement) -> None:
        """Declare a file."""
        number = self._number(one.unit, one.tokens[1].text)
        self.files.append(f".file {number} {one.tokens[2].text}")

    def inside_braces(self, one: _UnitStatement) -> str:
        """Return what a section contains, with its labels renamed."""
        content = self._texts[one.unit][one.tokens[0].at : one.end]
        inside = content[content.index("{") + 1 : content.rindex("}")]
        return inside.replace(_INFO, f"{_INFO}_{one.unit}_")

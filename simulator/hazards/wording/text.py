"""A hazard as a report shows it, in lines of so many columns."""

import collections
import itertools
import os
import re
import textwrap
from collections.abc import Iterable, Sequence

from kernels.source_access import plain

from ..participants import Fix, Participant, Source, Triple

COLUMNS = 80
"""What most terminals have."""
_CODE = 20
"""Columns that a line of code needs to be worth showing."""
_CUT = "..."


def report(
    headline: str, involved: Sequence[Participant], notes: Sequence[str], fix: Fix | None,
    columns: int = COLUMNS, beneath: tuple[str, Sequence[str]] = ("", ()),
) -> str:  # fmt: skip
    """Return the report of a finding: its lines, notes and fix.

    ``beneath``: further findings that it explains, and a line that says so.
    """
    text = wrap(headline, columns, others="  ")
    roles = max((len(i.role) for i in involved), default=0)
    places = max((len(str(i.source)) for i in involved), default=0)
    block = None
    for item in involved:
        code = item.source.code or item.instruction
        place = f"  {item.role:<{roles}}  {item.source!s:<{places}}"
        if len(place) > columns - _CODE:  # a long path: the code gets a line of its own
            whole = place.rstrip()
            if len(whole) > columns:
                text.append(f"  {item.role}")
                whole = f"    {shortened(str(item.source), columns - 4)}"
            text.append(whole)
            place = f"  {'':<{roles}}"
        text.append(_clipped(f"{place}  {code}", columns))
        indent = f"  {'':<{roles}}  "
        text += [placed(f"{indent}{how} ", place, columns) for how, place in _calls(item)]
        if item.thread is not None:
            who = f"thread {triple(item.thread)}"
            if item.block is not None and item.block != block:
                who += f" of block {triple(item.block)}"
                block = item.block
            text += wrap(f"{who}{_action(item)}", columns, indent, indent)
    for note in notes:
        text += wrap(note, columns, "  ", "    ")
    text += fix_lines(fix, columns) if fix else []
    what, others = beneath
    text += wrap(what, columns, "  ", "  ") if others else []
    for other in others:
        text += wrap(other, columns, "    ", "      ")
    return "\n".join(text)


def fix_lines(fix: Fix, columns: int = COLUMNS) -> list[str]:
    """Return a fix as text: the edit, the changed lines, and the verification."""
    text = _paragraph(f"fix  {fix}", columns) + _shown(fix.diff, columns)
    return text + (_paragraph(f"      {fix.proof}", columns) if fix.proof else [])


def in_short(severity: str, message: str, involved: Sequence[Participant]) -> str:
    """Return a finding in a sentence, with its place."""
    places = list(dict.fromkeys(str(item.source) for item in involved))
    where = " and ".join(filter(None, (", ".join(places[:-1]), *places[-1:])))
    return f"{severity}: {message}{', ' * bool(where)}{where}"


_ACTIONS = {"read": "reads", "write": "writes", "atomic": "updates"}


def _action(item: Participant) -> str:
    """Return what a racing thread does to its element, and which thread it races with."""
    if not item.element or item.role not in _ACTIONS:
        return ""
    did = f"{_ACTIONS[item.role]} {item.element}"
    if item.value:
        did = f"{'finds' if item.role == 'read' else 'stores'} {item.value} in {item.element}"
    other = item.opponent
    if other is None:
        return f" {did}"
    far = f" of block {triple(other.block)}" if other.block != item.block else ""
    return f" {did}, which thread {triple(other.thread)}{far} {_ACTIONS[other.role]}"


def each_once(texts: Iterable[str]) -> list[str]:
    """Texts in their order, each once; one that was repeated says how often it stood there."""
    found = collections.Counter(texts)
    return [text if count == 1 else f"{text} ({count} times)" for text, count in found.items()]


def _calls(item: Participant) -> list[tuple[str, Source]]:
    """Return the call path to an instruction, and its place in a header."""
    chain = [("called from", call) for call in item.calls]
    chain += [("and from   ", call) for call in item.also]
    return chain + ([("in", item.inside)] if item.inside else [])


def placed(how: str, place: Source, columns: int) -> str:
    """Return a place with as much of its code as fits."""
    shown = how + shortened(str(place), columns - len(how))
    with_code = f"{shown}  {place.code}".rstrip()
    return _clipped(with_code, columns) if len(shown) <= columns - _CODE else shown


def shortened(path: str, width: int) -> str:
    """Return a path or place cut at its head to fit."""
    if len(path) <= width:
        return path
    tail = path[len(path) - max(width - len(_CUT), 1) :]
    _, _, below = tail.partition(os.sep)
    return _CUT + (f"{os.sep}{below}" if below else tail)


def wrap(text: str, columns: int, first: str = "", others: str = "") -> list[str]:
    """Lines that fit, in which paths are whole or without their heads."""
    room = columns - max(len(first), len(others))
    fits = re.sub(r"\S+", lambda m: shortened(m[0], room) if os.sep in m[0] else m[0], text)
    return textwrap.wrap(
        fits, columns, initial_indent=first, subsequent_indent=others, break_on_hyphens=False
    )


def _clipped(line: str, columns: int) -> str:
    line = line.rstrip()
    return line if len(line) <= columns else line[: columns - 3] + "..."


def triple(t: Triple | None) -> str:
    """Return a coordinate as text."""
    return f"({t[0]},{t[1]},{t[2]})" if t else "?"


def _paragraph(text: str, columns: int) -> list[str]:
    return wrap(text, columns, "  ", "        ")


def _shown(diff: str, columns: int) -> list[str]:
    """Return the changed lines of a diff and their context, cut to the width.

    Of a long line that changed, the part is shown that did.
    """
    lines = [plain(line.expandtabs(4)) for line in diff.splitlines()[2:]]
    width, shown = columns - 8, []
    for line, before, after in zip(lines, ["", *lines], [*lines[1:], ""], strict=False):
        other = after if line[:1] == "-" else before
        if len(line) > width and {line[:1], other[:1]} == {"-", "+"}:
            pairs = zip(line[1:], other[1:], strict=False)
            start = sum(1 for _ in itertools.takewhile(lambda p: p[0] == p[1], pairs)) - width // 3
            line = f"{line[0]}...{line[1 + start :]}" if start > 3 else line
        shown.append(f"        {line}" if len(line) <= width else f"        {line[: width - 3]}...")
    return shown

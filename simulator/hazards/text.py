"""A hazard as a report shows it, in lines of so many columns."""

import itertools
import textwrap
from collections.abc import Sequence

from kernels.reading import plain

from .parts import Cure, Involved, Triple

COLUMNS = 80
"""What most terminals have."""
_CODE = 20
"""Columns that a line of code needs to be worth showing."""


def report(
    headline: str, involved: Sequence[Involved], notes: Sequence[str], cure: Cure | None,
    columns: int = COLUMNS,
) -> str:  # fmt: skip
    """The finding, the lines that take part in it, what else is to say, and the cure."""
    text = textwrap.wrap(headline, columns, subsequent_indent="  ")
    roles = max((len(i.role) for i in involved), default=0)
    places = max((len(str(i.source)) for i in involved), default=0)
    block = None
    for item in involved:
        code = item.source.code or item.instruction
        place = f"  {item.role:<{roles}}  {item.source!s:<{places}}"
        if len(place) > columns - _CODE:  # a long path: the code gets a line of its own
            text.append(place.rstrip())
            place = f"  {'':<{roles}}"
        text.append(_clipped(f"{place}  {code}", columns))
        indent = f"  {'':<{roles}}  "
        text += [_clipped(f"{indent}{link}", columns) for link in _calls(item)]
        if item.thread is not None:
            who = f"thread {triple(item.thread)}"
            if item.block is not None and item.block != block:
                who += f" of block {triple(item.block)}"
                block = item.block
            text.append(f"{indent}{who}")
    for note in notes:
        text += textwrap.wrap(note, columns, initial_indent="  ", subsequent_indent="    ")
    if cure:
        text += _paragraph(f"cure  {cure}", columns)
        text += _shown(cure.diff, columns)
        if cure.proof:
            text += _paragraph(f"      {cure.proof}", columns)
    return "\n".join(text)


def _calls(item: Involved) -> list[str]:
    """How a kernel came to an instruction, and where in a header it stands."""
    chain = [f"called from {call}  {call.code}" for call in item.calls]
    chain += [f"and from    {call}  {call.code}" for call in item.also]
    return chain + ([f"in {item.inside}"] if item.inside else [])


def _clipped(line: str, columns: int) -> str:
    line = line.rstrip()
    return line if len(line) <= columns else line[: columns - 3] + "..."


def triple(t: Triple | None) -> str:
    """A coordinate, for reading."""
    return f"({t[0]},{t[1]},{t[2]})" if t else "?"


def _paragraph(text: str, columns: int) -> list[str]:
    return textwrap.wrap(text, columns, initial_indent="  ", subsequent_indent="        ")


def _shown(diff: str, columns: int) -> list[str]:
    """The changed lines of a diff and those around them, cut to the width.

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

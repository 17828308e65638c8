"""The parts of an ELF file (System V ABI) and of its line table (DWARF 2) that machine code has."""

import struct
from dataclasses import dataclass

_NOBITS = 8


@dataclass(frozen=True)
class Section:
    """A section: its bytes, none for one that only takes up memory."""

    name: str
    size: int
    content: bytes


def sections(binary: bytes) -> list[Section]:
    """The sections of a 64-bit little-endian file, in its order."""
    (table,) = struct.unpack_from("<Q", binary, 0x28)
    each, count, names_at = struct.unpack_from("<HHH", binary, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", binary, table + each * n) for n in range(count)]

    def content(head: tuple[int, ...]) -> bytes:
        return b"" if head[1] == _NOBITS else binary[head[4] : head[4] + head[5]]

    names = content(heads[names_at])
    return [Section(_text(names, head[0]), head[5], content(head)) for head in heads]


def symbols(table: Section, names: Section) -> dict[str, int]:
    """Numbers of the symbols that have a name and are no section."""
    found = {}
    for number in range(len(table.content) // 24):
        name, info = struct.unpack_from("<IB", table.content, number * 24)
        if info & 15 != 3:
            found[_text(names.content, name)] = number
    return found


def line_rows(table: Section | None, moves: Section | None, symbol: int) -> list[tuple[int, int]]:
    """From which byte of a function on its code is of which line, ascending.

    Args:
        table: A line table of DWARF 2, whose addresses are ``moves``' symbols.
        moves: Its relocations.
        symbol: The function's number.
    """
    if table is None or moves is None:
        return []
    functions = {}
    each = 24 if moves.name.startswith(".rela") else 16
    for at in range(0, len(moves.content), each):
        place, info = struct.unpack_from("<QQ", moves.content, at)
        functions[place] = info >> 32
    code, rows = table.content, list[tuple[int, int]]()
    at = 0
    while at + 15 <= len(code):
        at = _unit(code, at, functions, symbol, rows)
    return sorted(dict(rows).items())


def _unit(
    code: bytes, start: int, functions: dict[int, int], symbol: int, rows: list[tuple[int, int]]
) -> int:
    """Run one line program; gives where the next one begins."""
    length, _, header, step, _, base, width, first = struct.unpack_from("<IHIBBbBB", code, start)
    at: int = start + 10 + header
    end: int = start + 4 + length
    address, line, ours = 0, 1, False

    def number(signed: bool = False) -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = code[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value - (1 << shift) if signed and byte & 64 else value

    while at < end:
        op = code[at]
        at += 1
        if op >= first:
            address += (op - first) // width * step
            line += base + (op - first) % width
        elif op == 0:
            size = number()
            kind = code[at]
            if kind == 2:  # the address of a function
                address, ours = 0, functions.get(at + 1) == symbol
            elif kind == 1:
                address, line, ours = 0, 1, False
            at += size
            continue
        elif op == 2:
            address += number() * step
            continue
        elif op == 3:
            line += number(signed=True)
            continue
        elif op == 8:
            address += (255 - first) // width * step
            continue
        elif op == 9:
            address += struct.unpack_from("<H", code, at)[0]
            at += 2
            continue
        elif op in (4, 5):
            number()
            continue
        elif op != 1:
            continue
        if ours:
            rows.append((address, line))
    return end


def _text(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode(errors="replace")

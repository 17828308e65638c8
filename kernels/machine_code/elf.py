"""Sections, symbols and line table of the ELF file that machine code comes in."""

import io
import struct
from collections.abc import Mapping

from elftools.common.exceptions import ELFError
from elftools.common.utils import struct_parse
from elftools.dwarf.lineprogram import LineProgram
from elftools.dwarf.structs import DWARFStructs
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Section, SymbolTableSection

UNREADABLE = (ELFError, struct.error, ValueError, LookupError, TypeError, AttributeError,
              AssertionError)  # fmt: skip
"""What reading a file raises that is damaged, or no ELF file."""
_LINES = ".nv_debug_line_sass"
_ADDRESS_BITS = 40
"""Bits of an address in the line table below the number of the function's symbol."""


def sections(binary: bytes) -> dict[str, Section]:
    """Return the sections of an ELF file by name."""
    return {section.name: section for section in ELFFile(io.BytesIO(binary)).iter_sections()}


def symbol_numbers(found: Mapping[str, Section]) -> dict[str, int]:
    """Return the numbers of the symbols that are no sections, by name."""
    table = found[".symtab"]
    assert isinstance(table, SymbolTableSection)
    return {
        symbol.name: number
        for number, symbol in enumerate(table.iter_symbols())
        if symbol["st_info"]["type"] != "STT_SECTION"
    }


def line_rows(found: Mapping[str, Section], symbol: int) -> list[tuple[int, int]]:
    """Return the rows (first byte, line) of a function's line table, by ascending byte.

    The table's addresses are relocations. Each is replaced by the number of its symbol, above
    the bits of the offset in the function.

    Args:
        found: The sections of the file.
        symbol: The function's number.
    """
    table, moves = found.get(_LINES), found.get(f".rela{_LINES}") or found.get(f".rel{_LINES}")
    if table is None or not isinstance(moves, RelocationSection):
        return []
    content = bytearray(table.data())
    for move in moves.iter_relocations():
        struct.pack_into("<Q", content, move["r_offset"], move["r_info_sym"] << _ADDRESS_BITS)
    structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8)
    stream, at, rows = io.BytesIO(content), 0, dict[int, int]()
    while at < len(content):
        header = struct_parse(structs.Dwarf_lineprog_header, stream, at)
        start, at = at + 10 + header["header_length"], at + 4 + header["unit_length"]
        for entry in LineProgram(header, stream, structs, start, at).get_entries():
            state = entry.state
            if state and not state.end_sequence and state.address >> _ADDRESS_BITS == symbol:
                rows[state.address & ((1 << _ADDRESS_BITS) - 1)] = state.line
    return sorted(rows.items())

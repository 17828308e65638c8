"""Lines of LLVM IR under construction.

A value of a PTX type is an integer of its width here, floating point too: bits are moved as they
are, and a NaN changes where a form says so.
"""

from __future__ import annotations

from kernels.ptx.types import TYPE_SIZES

FLOAT = {32: "float", 64: "double"}


def bits_of(type: str) -> int:
    """Width of a PTX type as a value; a predicate has one bit."""
    return 1 if type == "pred" else TYPE_SIZES[type] * 8


class Lines:
    """LLVM IR of one function, in the order of its lines.

    Attributes:
        declared: Declarations of what is called.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self._count = 0

    def emit(self, line: str) -> None:
        """Add an instruction without a result."""
        self.lines.append(f"  {line}")

    def value(self, expression: str) -> str:
        """Add an instruction; return its result's name."""
        self._count += 1
        self.lines.append(f"  %v{self._count} = {expression}")
        return f"%v{self._count}"

    def label(self) -> str:
        """Return the name of a new basic block."""
        self._count += 1
        return f"L{self._count}"

    def begin(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")

    def call(self, name: str, result: str, *arguments: tuple[str, str]) -> str:
        """Call a function; ``arguments``: their types and values."""
        types = ", ".join(type for type, _ in arguments)
        self.declared.add(f"declare {result} @{name}({types})")
        given = ", ".join(f"{type} {value}" for type, value in arguments)
        return self.value(f"call {result} @{name}({given})")

    def pure(self, name: str, type: str, *values: str) -> str:
        """Call an intrinsic on values of one type that gives one of that type."""
        suffix = {"float": "f32", "double": "f64"}.get(type, type)
        return self.call(f"llvm.{name}.{suffix}", type, *((type, value) for value in values))

    # -- words of records ---------------------------------------------------------

    def word_at(self, record: str, word: int) -> str:
        """Return a pointer to a word of a record."""
        return self.value(f"getelementptr i64, ptr {record}, i64 {word}")

    def word(self, record: str, word: int) -> str:
        """Return a word of a record."""
        return self.value(f"load i64, ptr {self.word_at(record, word)}")

    def add_to(self, pointer: str, value: str) -> None:
        """Add to a word in memory."""
        before = self.value(f"load i64, ptr {pointer}")
        after = self.value(f"add i64 {before}, {value}")
        self.emit(f"store i64 {after}, ptr {pointer}")

    # -- values -------------------------------------------------------------------

    def resized(self, value: str, have: int, want: int, signed: bool) -> str:
        """Return an integer in another width."""
        if have == want:
            return value
        if have > want:
            return self.value(f"trunc i{have} {value} to i{want}")
        return self.value(f"{'sext' if signed else 'zext'} i{have} {value} to i{want}")

    def real(self, value: str, bits: int) -> str:
        """Return bits as a floating-point number."""
        return self.value(f"bitcast i{bits} {value} to {FLOAT[bits]}")

    def raw(self, value: str, bits: int) -> str:
        """Return a floating-point number as bits."""
        return self.value(f"bitcast {FLOAT[bits]} {value} to i{bits}")

"""Constants of PTX, and expressions of them (PTX ISA, "Constant Expressions").

They are C's, on signed and unsigned numbers of 64 bits, and on doubles. Where the text of the ISA
leaves it open it is as ptxas does it: a shift counts modulo 64, ``%`` is unsigned, ``? :`` has the
type of what it chooses, and both of its values are worked out.
"""

import operator
import struct
from collections.abc import Callable
from typing import NamedTuple

from ..errors import PtxError
from .lexer import Cursor, Token
from .module import Imm

_BITS = (1 << 64) - 1
_LARGEST = (1 << 63) - 1
_DEPTH = 100
"""Operators and parentheses inside of each other."""
_LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<=", ">=", "<", ">"), ("<<", ">>"),
    ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
"""Operators that bind alike, from the loosest on."""
_LEVEL = {name: number for number, names in enumerate(_LEVELS) for name in names}
_SIGNS = {name[0] for name in _LEVEL}
_COMPARES: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt,
    ">": operator.gt,
}  # fmt: skip
_BITWISE: dict[str, Callable[[int, int], int]] = {
    "|": operator.or_, "^": operator.xor, "&": operator.and_,
}  # fmt: skip
_SUMS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
WARP_SIZE = "WARP_SZ"
"""PTX's one constant with a name."""


class _Value(NamedTuple):
    """A number, and whether it is ``s64``, ``u64`` or ``f64``."""

    kind: str
    number: float

    @property
    def whole(self) -> int:
        assert isinstance(self.number, int)
        return self.number


class ConstantParser:
    """Reads constants from a cursor."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor

    def constant(self) -> Imm:
        """Return a number, perhaps signed, or an expression of numbers."""
        start, sign = self.cursor.at, self.cursor.peek if self.cursor.peek in ("-", "+") else ""
        token = self.cursor.tokens[self.cursor.at + bool(sign)]
        if (
            token.kind in ("int", "real")
            and self.cursor.tokens[self.cursor.at + 1 + bool(sign)].text in ",;]}"
        ):
            self.cursor.at += 1 + bool(sign)
            return self._plain(token, sign == "-")
        if token.kind == "real" and token.text[1] in "fF":  # takes part in no expression
            self.cursor.at += 1 + bool(sign)
            return self._plain(token, sign == "-")
        value = self._choice(0)
        if self.cursor.at == start:
            self._missing()
        if value.kind == "f64":
            return _double(value.number)
        return Imm("int", value.whole)

    def whole(self) -> int:
        """Return a whole number, likewise; negative ones are signed."""
        line, imm = self.cursor.tokens[self.cursor.at].line, self.constant()
        if imm.kind != "int":
            raise PtxError(f"PTX line {line}: expected a whole number")
        return imm.value - (1 << 64) if imm.value > _LARGEST else imm.value

    @property
    def begins_constant(self) -> bool:
        """Whether the next token is of a constant, not of a register that is negated."""
        token = self.cursor.tokens[self.cursor.at]
        if token.text in ("-", "!"):
            after = self.cursor.tokens[self.cursor.at + 1]
            return after.kind in ("int", "real", "punct") or after.text == WARP_SIZE
        return token.kind in ("int", "real") or token.text in ("+", "~", "(", WARP_SIZE)

    def _plain(self, token: Token, negative: bool) -> Imm:
        if token.kind == "int":
            value = self.cursor.value(token)
            return Imm("int", -value if negative else value)
        text = token.text.lower()
        if text.startswith("0f"):
            return Imm("f32", int(text[2:], 16) ^ (0x80000000 if negative else 0))
        return _double(-_real(text) if negative else _real(text))

    # -- from the loosest to the tightest -----------------------------------------------

    def _choice(self, depth: int) -> _Value:
        condition = self._binary(0, depth)
        if not self.cursor.accept("?"):
            return condition
        self._whole_numbers(condition)
        first = self._choice(self._deeper(depth))
        self.cursor.expect(":")
        second = self._choice(self._deeper(depth))
        self._whole_numbers(first, second)
        return first if condition.number else second

    def _binary(self, loosest: int, depth: int) -> _Value:
        """Parse an expression of binary operators down to a precedence level."""
        value = self._unary(depth)
        while (name := self._operator()) and (level := _LEVEL[name]) >= loosest:
            self.cursor.at += len(name)
            value = self._apply(name, value, self._binary(level + 1, depth))
        return value

    def _operator(self) -> str:
        """Return the operator that is next, if one is; those of two characters are two tokens."""
        first = self.cursor.tokens[self.cursor.at]
        if first.text not in _SIGNS:  # "%" is a word: names may begin with it
            return ""
        second = self.cursor.tokens[self.cursor.at + 1]
        pair = first.text + second.text if second.at == first.at + 1 else ""
        return pair if pair in _LEVEL else first.text if first.text in _LEVEL else ""

    def _unary(self, depth: int) -> _Value:
        token = self.cursor.tokens[self.cursor.at]
        if token.kind == "punct" and token.text in "+-~!":
            self.cursor.at += 1
            value = self._unary(self._deeper(depth))
            if token.text in "~!":
                self._whole_numbers(value)
            if token.text == "~":
                return _Value("u64", ~value.whole & _BITS)
            if token.text == "!":
                return _Value("s64", int(not value.number))
            return value if token.text == "+" else _wrapped(value.kind, -value.number)
        if self.cursor.accept("("):
            if self.cursor.peek in (".s64", ".u64"):
                kind = self.cursor.next().text[1:]
                self.cursor.expect(")")
                value = self._unary(self._deeper(depth))
                self._whole_numbers(value)
                return _wrapped(kind, value.number)
            value = self._choice(self._deeper(depth))
            self.cursor.expect(")")
            return value
        if token.kind == "int":
            self.cursor.at += 1
            number = self.cursor.value(token)
            unsigned = token.text[-1] == "U" or number > _LARGEST
            return _Value("u64" if unsigned else "s64", number)
        if token.kind == "real" and token.text[1] not in "fF":
            self.cursor.at += 1
            return _Value("f64", _real(token.text.lower()))
        if self.cursor.accept(WARP_SIZE):
            return _Value("s64", 32)
        return self._missing()

    def _missing(self) -> _Value:
        token = self.cursor.tokens[self.cursor.at]
        raise PtxError(f"PTX line {token.line}: expected a constant, found {token.text!r}")

    def _deeper(self, depth: int) -> int:
        if depth >= _DEPTH:
            self.cursor.fail(f"a constant expression, {depth} deep")
        return depth + 1

    def _whole_numbers(self, *values: _Value) -> None:
        if any(value.kind == "f64" for value in values):
            self.cursor.fail("a constant expression of whole numbers has a real one")

    def _apply(self, name: str, a: _Value, b: _Value) -> _Value:
        if (a.kind == "f64") != (b.kind == "f64"):
            self.cursor.fail("a constant expression mixes whole numbers and real ones")
        if name in "/%" and b.number == 0 and a.kind != "f64":
            self.cursor.fail("a constant expression divides by zero")
        kind = "f64" if a.kind == "f64" else "u64" if "u64" in (a.kind, b.kind) else "s64"
        if kind == "f64" and name not in (*_SUMS, *_COMPARES):
            self._whole_numbers(a)
        if name in ("<<", ">>"):
            by = b.whole & 63
            return _wrapped(a.kind, a.whole << by if name == "<<" else a.whole >> by)
        if name in ("&&", "||"):
            both = bool(a.number), bool(b.number)
            return _Value("s64", int(all(both) if name == "&&" else any(both)))
        if name == "%":
            return _Value("u64", (a.whole & _BITS) % (b.whole & _BITS))
        a, b = _wrapped(kind, a.number), _wrapped(kind, b.number)
        if name in _COMPARES:
            return _Value("s64", int(_COMPARES[name](a.number, b.number)))
        if name in _BITWISE:
            return _wrapped(kind, _BITWISE[name](a.whole, b.whole))
        if name == "/" and kind != "f64":
            quotient = abs(a.whole) // abs(b.whole)
            if quotient > _LARGEST and kind == "s64":
                self.cursor.fail("a constant expression overflows")  # ptxas ends with a signal
            return _wrapped(kind, quotient if (a.number < 0) == (b.number < 0) else -quotient)
        try:
            return _wrapped(kind, _SUMS[name](a.number, b.number))
        except (OverflowError, ZeroDivisionError):
            self.cursor.fail("a constant expression divides by zero")
            raise AssertionError from None


def _double(number: float) -> Imm:
    return Imm("f64", struct.unpack("<Q", struct.pack("<d", number))[0])


def _real(text: str) -> float:
    if text.startswith("0d"):
        number: float = struct.unpack("<d", struct.pack("<Q", int(text[2:], 16)))[0]
        return number
    return float(text)


def _wrapped(kind: str, number: float) -> _Value:
    """Return a number in its type's range."""
    if kind == "f64":
        return _Value(kind, number)
    bits = int(number) & _BITS
    return _Value(kind, bits - (1 << 64) if kind == "s64" and bits > _LARGEST else bits)

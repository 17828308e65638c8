"""``printf`` formats as CUDA has them (CUDA C++ Programming Guide, "Formatted Output")."""

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

MAX_TEXT = 1 << 16
"""A format and a string end, and a field is cut, at so many characters."""

_FIELD = re.compile(r"%([-+ #0]*)(\*|\d*)(?:\.(\d*))?(h|ll|l)?([diouxXcsfeEgGaAp%])")
"""What else C has is text to a GPU, and takes no argument (``%zx`` on an H200)."""
_BITS = {"h": 16, "": 32, "l": 64, "ll": 64}
_FLOATS = "feEgGaA"
_SIZES = {"i": 4, "I": 4, "q": 8, "Q": 8, "d": 8}

String = Callable[[int, int], str]
"""Gives the text at an address, which is cut after so many bytes."""
Take = Callable[[str], float]
"""Gives the next argument, by its ``struct`` code: 4 bytes (``i``, ``I``) or 8 (``Q``, ``d``)."""


@dataclass(frozen=True)
class Field:
    """A conversion: flags, width (``*``: an argument), precision (-1: none), and letter."""

    flags: str
    width: str
    precision: int
    bits: int
    letter: str

    @property
    def takes(self) -> int:
        """Number of arguments."""
        return (self.letter != "%") + (self.width == "*")

    def text(self, take: Take, string: String) -> str:
        """Return the formatted field."""
        if self.letter == "%":
            return "%"
        flags = self.flags
        width = int(take("i")) if self.width == "*" else int(self.width or 0)
        precision = self.precision
        if width < 0:
            flags, width = flags + "-", -width
        value: float | str
        if self.letter in _FLOATS:
            value, letter = take("d"), self.letter
            if not math.isfinite(value):
                flags = flags.replace("0", "")
            if letter in "aA":
                text = _hexadecimal(value, precision)
                value, letter, precision = text.upper() if letter == "A" else text, "s", -1
        elif self.letter in "sp":
            address, letter = int(take("Q")), "s"
            if self.letter == "s":
                max_length = MAX_TEXT if precision < 0 else min(precision, MAX_TEXT)
                value = string(address, max_length) if address else "(null)"
            else:
                value, precision = hex(address) if address else "(nil)", -1
        elif self.letter == "c":
            value, letter, precision = chr(int(take("I")) & 0xFF), "s", -1
        else:
            value, letter = self.integer(int(take("Q" if self.bits == 64 else "I"))), self.letter
            if letter in "di":
                letter = "d"
            else:
                flags = re.sub(r"[+ ]", "", flags)
            if "#" in flags and (letter == "o" or not value):  # Python has 0o and 0x0
                precision = max(precision, len(f"{value:o}") + 1 if letter == "o" and value else 1)
                flags = flags.replace("#", "")
            letter = "d" if letter == "u" else letter
            if precision >= 0:
                flags = flags.replace("0", "")
        given = f".{min(precision, MAX_TEXT)}" if precision >= 0 else ""
        return f"%{flags}{min(width, MAX_TEXT) or ''}{given}{letter}" % value

    def integer(self, number: int) -> int:
        """Truncate an integer to the conversion's width and signedness."""
        number &= (1 << self.bits) - 1
        signed = self.letter in "di" and number >> self.bits - 1
        return number - (1 << self.bits) if signed else number


def _hexadecimal(value: float, precision: int) -> str:
    """Format ``%a`` with the given precision, or with as many digits as needed."""
    if precision >= 0 and math.isfinite(value) and value:
        fraction, power = math.frexp(value)
        digits = 1 << 4 * min(precision, 13) + 1
        value = math.ldexp(round(fraction * digits) / digits, power)
    mantissa, _, exponent = value.hex().partition("p")
    if not exponent:
        return mantissa
    mantissa = mantissa.rstrip("0").rstrip(".") if mantissa not in ("0x0", "-0x0") else mantissa
    if precision > 0:
        mantissa = f"{mantissa}{'' if '.' in mantissa else '.'}"
        mantissa += "0" * (precision - len(mantissa.partition(".")[2]))
    return f"{mantissa}p{exponent}"


@functools.lru_cache(maxsize=256)
def fields(form: str) -> tuple[str | Field, ...]:
    """Split a format into texts and conversions."""
    found: list[str | Field] = []
    end = 0
    for match in _FIELD.finditer(form):
        flags, width, precision, length, letter = match.groups()
        found.append(form[end : match.start()])
        given = -1 if precision is None else int(precision[:9] or 0)
        found.append(Field(flags, width[:9], given, _BITS[length or ""], letter))
        end = match.end()
    return (*found, form[end:])


def takes(form: str) -> int:
    """Return the number of arguments of a format, which ``printf`` returns on a GPU."""
    return sum(field.takes for field in fields(form) if isinstance(field, Field))


def formatted(form: str, start: int, read: Callable[[int, str], float], string: String) -> str:
    """Return a format with its arguments, which are consecutive and aligned to their size.

    ``start``: address of the first argument. ``read``: returns the number at an address, by its
    ``struct`` code. ``string``: returns the string at an address.
    """
    at = start

    def take(code: str) -> float:
        nonlocal at
        size = _SIZES[code]
        at = -(-at // size) * size + size
        return read(at - size, code)

    return "".join(
        part if isinstance(part, str) else part.text(take, string) for part in fields(form)
    )

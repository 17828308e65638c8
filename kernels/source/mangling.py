"""Names and parameter types out of mangled C++ names (Itanium C++ ABI, "Mangling").

A kernel's mangled name says what its parameters are, typedefs and templates resolved:
``_Z5scaleIfEvPT_i`` is ``scale`` with ``float*`` and ``int``.
"""

import contextlib
import functools
from dataclasses import dataclass

_BUILTIN = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char",
    "h": "unsigned char", "s": "short", "t": "unsigned short", "i": "int", "j": "unsigned int",
    "l": "long", "m": "unsigned long", "x": "long long", "y": "unsigned long long",
    "n": "__int128", "o": "unsigned __int128", "f": "float", "d": "double", "e": "long double",
    "z": "...",
}  # fmt: skip
_STD = {
    "St": "std", "Sa": "std::allocator", "Sb": "std::basic_string", "Ss": "std::string",
    "Si": "std::istream", "So": "std::ostream", "Sd": "std::iostream",
}  # fmt: skip
_DEEPEST = 60


@dataclass(frozen=True)
class DemangledName:
    """A function's name as C++ writes it, without template arguments, and its parameters."""

    name: str
    params: tuple[str, ...]


@functools.lru_cache(maxsize=256)
def demangle(symbol: str) -> DemangledName | None:
    """Demangle a symbol; ``None`` if it is not mangled, or by unsupported rules."""
    if not symbol.startswith("_Z"):
        return None
    try:
        return _Reader(symbol).function()
    except (_Unknown, IndexError, ValueError):
        return None


def plain_symbol(symbol: str) -> str:
    """Return the C++ name in a symbol, as far as it can be read; else the symbol itself.

    Of a constructor or an operator that is its class.
    """
    if (found := demangle(symbol)) is not None:
        return found.name
    reader = _Reader(symbol)
    with contextlib.suppress(_Unknown, IndexError, ValueError):
        reader.name(outermost=True)
    return "::".join(reader.parts) if symbol.startswith("_Z") and reader.parts else symbol


class _Unknown(Exception):
    pass


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 2, 0
        self.substitutions: list[str | int] = []  # an int: the template's argument of that number
        self.arguments: list[str] = []
        self.last_parameter = 0
        self.parts: list[str] = []
        """Of the outermost nested name, as far as it was read."""

    def function(self) -> DemangledName:
        name, template = self.name(outermost=True)
        if template:
            self.type()  # a template's name is followed by what it returns
        params = []
        while self.at < len(self.text) and self.text[self.at] not in ".$":
            params.append(self.type())
        params = [param for param in params if param not in ("void", "")]  # "": an empty pack
        return DemangledName(name, tuple(params))

    def take(self, word: str) -> bool:
        if self.text.startswith(word, self.at):
            self.at += len(word)
            return True
        return False

    def number(self) -> int:
        start = self.at
        while self.text[self.at].isdigit():
            self.at += 1
        return int(self.text[start : self.at])

    def word(self) -> str:
        """``4name``, a closure type, an unnamed type; operators are not read."""
        if self.take("Ul"):
            while not self.take("E"):
                self.type()
            self._sequence()
            return "{lambda}"
        if self.take("Ut"):
            self._sequence()
            return "{unnamed}"
        length = self.number()
        self.at += length
        if self.at > len(self.text):
            raise _Unknown
        found = self.text[self.at - length : self.at]
        return "(anonymous namespace)" if found.startswith("_GLOBAL__N") else found

    def name(self, outermost: bool = False) -> tuple[str, bool]:
        """Return a name, and whether template arguments end it."""
        if self.take("Z"):
            return self.local(), False
        if not self.take("N"):
            if self.take("St"):
                found = f"std::{self.word()}"
            else:
                found = self.word()
            if self.text[self.at : self.at + 1] == "I":
                self.substitutions.append(found)
                return found + self.template(outermost), True
            return found, False
        while self.text[self.at] in "rVK":
            self.at += 1
        parts: list[str] = self.parts if outermost and not self.depth else []
        ended = False
        while not self.take("E"):
            ended = False
            if self.text[self.at] == "I":
                parts[-1] += self.template(outermost)
                ended = True
            elif self.text[self.at] == "S":
                parts.append(self.substitution())
                continue
            elif self.text[self.at] == "T":
                parts.append(self.parameter())
            else:
                self.take("L")
                parts.append(self.word())
            if self.text[self.at] != "E" or not outermost:
                self.substitutions.append("::".join(parts))
        if not outermost and self.substitutions:
            self.substitutions.pop()  # the caller adds the whole name
        return "::".join(parts), ended

    def local(self) -> str:
        """Return a name in a function's body: ``Z``, the function, ``E``, and the name."""
        function = self.encoding()
        found, _ = self.name()
        if self.take("_"):  # which of several of that name
            self.number()
        return f"{function}::{found}"

    def encoding(self) -> str:
        """Return a function in a name, up to the ``E`` behind it."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _Unknown
        outer, self.arguments = self.arguments, []  # ``T_`` in its types is its own argument
        name, template = self.name(outermost=True)
        if template:
            self.type()
        while not self.take("E"):
            self.type()
        self.depth, self.arguments = self.depth - 1, outer
        return name

    def template(self, outermost: bool) -> str:
        """``I...E``; the outermost ones are what ``T_`` stands for. The name leaves them out."""
        self.at += 1
        arguments: list[str] = []
        while not self.take("E"):
            arguments.append(self.argument())
        if outermost:
            self.arguments = arguments
            return ""
        return f"<{', '.join(arguments)}>"

    def argument(self) -> str:
        if self.take("L"):  # a literal: its type, its value
            if self.take("_Z"):
                return self.encoding()
            self.type()
            start = self.at
            self.at = self.text.index("E", start) + 1
            return self.text[start : self.at - 1].replace("n", "-")
        if self.take("J"):
            found = []
            while not self.take("E"):
                found.append(self.argument())
            return ", ".join(found)
        if self.take("XadL_Z"):  # the address of a function
            function = self.encoding()
            if not self.take("E"):
                raise _Unknown
            return f"&{function}"
        if self.text[self.at] == "X":
            raise _Unknown
        return self.type()

    def substitution(self) -> str:
        for short, full in _STD.items():
            if self.take(short):
                return (
                    f"std::{self.word()}"
                    if short == "St" and self.text[self.at].isdigit()
                    else full
                )
        self.at += 1
        found = self.substitutions[self._sequence()]
        return self.arguments[found] if isinstance(found, int) else found

    def parameter(self) -> str:
        self.at += 1
        self.last_parameter = self._sequence()
        return self.arguments[self.last_parameter]

    def _sequence(self) -> int:
        """``_`` is 0, ``0_`` is 1, in base 36."""
        end = self.text.index("_", self.at)
        digits, self.at = self.text[self.at : end], end + 1
        return int(digits, 36) + 1 if digits else 0

    def type(self) -> str:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _Unknown
        try:
            return self._type()
        finally:
            self.depth -= 1

    def _type(self) -> str:
        char = self.text[self.at]
        if char in _BUILTIN:
            self.at += 1
            return _BUILTIN[char]
        if self.take("Dh") or self.take("DF16_"):
            return "__half"
        if self.take("DF16b"):
            return "__nv_bfloat16"
        if self.take("Dp"):
            return self.type()
        if char in "PRO":
            self.at += 1
            found = self.type() + {"P": "*", "R": "&", "O": "&&"}[char]
        elif char in "KVr":
            while self.text[self.at] in "KVr":
                self.at += 1
            found = self.type()  # without const and volatile
            self.substitutions.append(f"{found}")
            return found
        elif char == "T":
            found = self.parameter()
            self.substitutions.append(self.last_parameter)
            return found
        elif char == "S" and self.text[self.at + 1] != "t":
            found = self.substitution()
            if self.text[self.at : self.at + 1] != "I":
                return found
            found += self.template(False)
        elif char == "F":
            self.at += 1
            while not self.take("E"):
                self.type()
            found = "function"
        elif char == "M":
            self.at += 1
            found = f"{self.type()}::*{self.type()}"
        elif char == "A":
            self.at += 1
            if self.text[self.at].isdigit():
                self.number()
            self.take("_")
            found = f"{self.type()}[]"
        else:
            found, _ = self.name()
        self.substitutions.append(found)
        return found

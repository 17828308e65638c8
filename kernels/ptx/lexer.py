"""PTX text to tokens, and a cursor over them."""

import functools
import re
from typing import NamedTuple

from kernels.ptx.header import strip_comments

from ..errors import PtxError

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<real>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b
        |\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
    | (?P<int>0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?)
    | (?P<word>\.[A-Za-z_]\w*(?:::\w+)*|[%$@]?[A-Za-z_$%][\w$]*(?:(?:\.|::)\w+)*)
    | (?P<punct>[-+*/{}()\[\];:,|!<>=@~&^?])
    )""",
    re.X | re.A,
)


_ASSEMBLY = re.compile(r"// begin inline asm$.*?// end inline asm$", re.M | re.S)
_LOC = re.compile(r"^[ \t]*\.loc[ \t].*$", re.M)
_DATA = re.compile(r'[^{}"]*')
"""What stands in a section: numbers and labels, megabytes of them."""
_ESCAPES = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_DIGITS = 80
"""Characters of an integer constant: 64 binary digits and some zeros."""
_DEPTH = 200
"""Braces inside of each other."""


class Token(NamedTuple):
    """One token: its kind, text, PTX line, and where in the text it begins."""

    kind: str
    text: str
    line: int
    at: int = 0


@functools.lru_cache(maxsize=4)
def tokens(text: str) -> tuple[Token, ...]:
    """Split a PTX text; comments are gone, and what is in sections; lines are counted.

    The last texts are remembered: each of a module's kernels is compiled by itself.

    LLVM gives each further line of inline assembly the next line of the source, which is not its.
    """
    text = strip_comments(_ASSEMBLY.sub(_without_places, text))
    found: list[Token] = []
    position, line, counted = 0, 1, 0
    match = _TOKEN.match
    while True:
        m = match(text, position)
        if not m or not m.lastgroup:
            rest = text[position:].lstrip()
            if rest:
                line += text.count("\n", counted, len(text) - len(rest))
                raise PtxError(f"PTX line {line}: cannot read {rest.split()[0][:40]!r}")
            return tuple(found)
        start = m.start(m.lastgroup)
        line += text.count("\n", counted, start)
        counted = start
        found.append(Token(m.lastgroup, m[m.lastgroup], line, start))
        position = m.end()
        if m[m.lastgroup] == "{" and len(found) > 2 and found[-3].text == ".section":
            position = _DATA.match(text, position).end()  # type: ignore[union-attr]


def _without_places(assembly: re.Match[str]) -> str:
    return _LOC.sub(lambda m: " " * len(m[0]), assembly[0])


def unquoted(text: str) -> str:
    """Return a string's content; non-ASCII bytes are written as octal escapes."""
    raw = text[1:-1].encode("utf-8", "replace")

    def said(m: re.Match[bytes]) -> bytes:
        return bytes([int(m[1], 8)]) if m[1] else _ESCAPES.get(m[2], m[2])

    raw = re.sub(rb"\\(?:([0-3][0-7]{2})|(.))", said, raw, flags=re.S)
    return raw.decode("utf-8", "replace")


class Cursor:
    """Reads tokens one after the other."""

    def __init__(self, text: str) -> None:
        self.tokens = list(tokens(text))
        self.tokens.append(Token("end", "", self.tokens[-1].line if self.tokens else 1))
        self.at = 0

    @property
    def peek(self) -> str:
        """The next token's text."""
        return self.tokens[self.at].text

    def next(self) -> Token:
        """Take the next token."""
        token = self.tokens[self.at]
        if token.kind == "end":
            raise PtxError(f"PTX line {token.line}: the text ends too early")
        self.at += 1
        return token

    def accept(self, text: str) -> bool:
        """Take the next token if it is this one."""
        if self.tokens[self.at].text == text and self.tokens[self.at].kind != "string":
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        """Take the next token, which has to be this one."""
        if not self.accept(text):
            self.fail(f"expected {text!r}, found {self.peek!r}")

    def name(self) -> str:
        """Take the next token, which has to be a name: a string, say, is none."""
        token = self.next()
        if token.kind != "word" or token.text[0] in ".@":
            raise PtxError(f"PTX line {token.line}: expected a name, found {token.text[:40]!r}")
        return token.text

    def fail(self, message: str) -> None:
        """Raise an error at the next token."""
        raise PtxError(f"PTX line {self.tokens[self.at].line}: {message}")

    def integer(self) -> int:
        """Take a whole number, perhaps signed."""
        sign = -1 if self.accept("-") else 1
        if sign == 1:
            self.accept("+")
        token = self.next()
        if token.kind != "int":
            raise PtxError(f"PTX line {token.line}: expected a number, found {token.text!r}")
        return sign * self.value(token)

    def extents(self) -> tuple[int, ...]:
        """Return the numbers after a directive, perhaps none."""
        if self.tokens[self.at].kind != "int":
            return ()
        found = [self.integer()]
        while self.accept(","):
            found.append(self.integer())
        return tuple(found)

    def headline(self, directive: str, pattern: str) -> str:
        """Return the operand of one of a text's first directives."""
        if not self.accept(directive):
            self.fail(f"{directive} is missing: PTX begins with .version and .target")
        if not re.fullmatch(pattern, self.peek):
            self.fail(f"{directive} cannot be {self.peek[:40]!r}")
        return self.next().text

    def value(self, token: Token) -> int:
        """Return the value of an integer constant; 64 bits at most, as in PTX."""
        text = token.text.rstrip("U")
        octal = len(text) > 1 and text[0] == "0" and text[1].isdigit()
        try:
            value = int(text, 8 if octal else 0) if len(text) <= _DIGITS else 1 << 64
        except ValueError:
            raise PtxError(f"PTX line {token.line}: {text!r} is no octal number") from None
        if value >> 64:
            raise PtxError(f"PTX line {token.line}: {text[:20]}... does not fit in 64 bits")
        return value

    def enter(self, depth: int) -> None:
        """Refuse what nests deeper than anything that a compiler writes."""
        if depth > _DEPTH:
            self.fail(f"braces inside of braces, {depth} deep")

    def skip_statement(self) -> None:
        """Take everything up to the semicolon."""
        while not self.accept(";"):
            self.next()

    def skip_braces(self) -> None:
        """Take everything up to the matching brace."""
        self.expect("{")
        depth = 1
        while depth:
            text = self.next().text
            depth += (text == "{") - (text == "}")

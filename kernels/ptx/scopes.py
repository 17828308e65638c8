"""Names of a function in PTX: what they stand for in the scopes that are open."""

from ..errors import PtxError
from .lexer import Cursor
from .module import Function


class NameScopes:
    """Scopes that are open at a cursor; names of nested ones get a number.

    Attributes:
        scopes: By name the unique one, the innermost scope last.
        current: The function that is read.
    """

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.scopes: list[dict[str, str]] = []
        self.current = Function("", False, (), ())
        self._count = 0
        self._ahead: set[str] = set()

    def resolve(self, name: str) -> str:
        """Return the unique name that a name stands for here."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name

    def is_register(self, name: str) -> bool:
        """Whether a name is a register; those of inline assembly need no percent sign."""
        return name in self.current.registers

    def open(self) -> None:
        """Open a nested scope with its labels, since a branch may precede its label."""
        self.scopes.append({})
        depth, at = 1, self.cursor.at
        while depth and self.cursor.tokens[at].kind != "end":
            token = self.cursor.tokens[at]
            depth += (token.text == "{") - (token.text == "}")
            label = token.kind == "word" and self.cursor.tokens[at + 1].text == ":"
            if depth == 1 and label and token.text not in self.scopes[-1]:
                self._ahead.add(self.declare(token.text))
            at += 1

    def declare_label(self, name: str) -> str:
        """Declare a label, which ``open`` may have declared ahead."""
        known = self.scopes[-1].get(name, "")
        if known not in self._ahead:
            return self.declare(name)
        self._ahead.remove(known)
        return known

    def declare(self, name: str) -> str:
        """Return a name that is unique in the function: nested scopes may repeat one."""
        if name in self.scopes[-1]:
            line = self.cursor.tokens[self.cursor.at - 1].line
            raise PtxError(f"PTX line {line}: {name!r} is declared twice")
        unique = name
        if len(self.scopes) > 1:
            self._count += 1
            unique = f"{name}#{self._count}"
        self.scopes[-1][name] = unique
        return unique

"""Function prototypes: repeated declarations, and those for calls through pointers."""

from collections.abc import Sequence

from .declarations import DeclarationParser
from .header import Param
from .lexer import Cursor
from .module import Function, Module, Symbol
from .scopes import NameScopes


class PrototypeParser:
    """Reads what a function, or a pointer to one, is called with (PTX ISA, "call").

    Attributes:
        result: The module that is read.
        declared: By a function's name where it was declared first, and as what.
    """

    def __init__(
        self, cursor: Cursor, names: NameScopes, declarations: DeclarationParser, result: Module
    ) -> None:
        self.cursor, self.names, self.declarations = cursor, names, declarations
        self.result = result
        self.declared: dict[str, tuple[int, list[object]]] = {}

    def same_as_before(self, function: Function, external: bool) -> None:
        """Hold a function to what was declared of it before: all but the parameters' names."""
        name = function.name
        said: list[object] = [
            "external" if external else "entry" if function.is_entry else "function",
            *((p.type, p.count, p.align, bool(p.register)) for p in function.results), "of",
            *((p.type, p.count, p.align, bool(p.register)) for p in function.params),
        ]  # fmt: skip
        first, before = self.declared.setdefault(name, (self.cursor.at, said))
        if before != said:
            line = self.cursor.tokens[first - 1].line
            self.cursor.fail(
                f"{name!r} has other parameters, results or linkage in PTX line {line}"
            )

    def prototype(self, label: str) -> None:
        """``.callprototype (result) _ (parameters)``: what a pointer that is called holds.

        ``.calltargets function, ...``: it is one of these.
        """
        if self.cursor.next().text == ".calltargets":
            names = [self.cursor.name()]
            while self.cursor.accept(","):
                names.append(self.cursor.name())
            self.cursor.expect(";")
            self.names.current.prototypes[label] = self._signature_of(names)
            return
        results = self.declarations.param_list() if self.cursor.peek == "(" else ()
        self.cursor.name()
        params = self.declarations.param_list() if self.cursor.peek == "(" else ()
        self.cursor.skip_statement()
        self.names.current.prototypes[label] = results, params

    def signature(self, given: bool) -> str:
        """Return the label that says what a pointer is called with, behind what is passed.

        Or the name of an array of functions (PTX ISA, "call").
        """
        name = self.cursor.name() if given else ""
        label = self.names.resolve(name)
        if table := self.result.variables.get(name):
            functions = [value.name for value in table.init if isinstance(value, Symbol)]
            self.names.current.prototypes[label] = self._signature_of(functions)
        if label not in self.names.current.prototypes:
            self.cursor.fail(
                "a call through a pointer ends with the label of a prototype before it"
            )
        return label

    def _signature_of(self, names: Sequence[str]) -> tuple[tuple[Param, ...], tuple[Param, ...]]:
        """Return the results and the parameters of one of some functions, which have the same."""
        for name in names:
            if self.declared.get(name, (self.cursor.at,))[0] >= self.cursor.at:
                self.cursor.fail(f"the function {name!r} is named, and not declared before")
        if any(self.declared[name][1] != self.declared[names[0]][1] for name in names):
            self.cursor.fail("functions with other parameters or results than the first one's")
        found = next((f for name in names if (f := self.result.functions.get(name))), None)
        return (found.results, found.params) if found else ((), ())

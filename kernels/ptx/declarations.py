"""Declarations of variables, registers and parameters, and what ptxas asks of them."""

from .header import Param
from .lexer import Cursor
from .module import TYPES, Function, Symbol, Variable
from .operands import OperandParser, float_constant
from .scopes import NameScopes
from .types import TYPE_SIZES

_MAX_ALIGN = 1 << 20
ENTRY = {
    ".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".maxnreg", ".reqnctapercluster",
    ".maxclusterrank", ".explicitcluster", ".blocksareclusters",
}  # fmt: skip
"""Directives of an entry."""
CALLED = (".noreturn", ".abi_preserve", ".abi_preserve_control")
"""Those of other functions; the first before all others, of what gives nothing."""
_MAX_REGISTERS = 1 << 18
_VECTOR_BYTES = 16
_NO_TYPE = ("bf16", "bf16x2")
"""Types of instructions that no register and no variable has: they are held as bits."""


class DeclarationParser:
    """Reads declarations from a cursor."""

    def __init__(self, cursor: Cursor, names: NameScopes) -> None:
        self.cursor, self.names = cursor, names
        self.operands = OperandParser(cursor, names)
        self.constants = self.operands.constants

    def variables(
        self, module: dict[str, Variable] | None, external: bool = False
    ) -> list[Variable]:
        """Return one declaration: ``.space [.align N] .type name[dims] [= init] {, name...} ;``.

        ``module``: its variables so far, ``None`` within a function.
        """
        space = self.cursor.next().text.lstrip(".")
        align: int | None = None
        ptx_type, vector = "", 1
        while self.cursor.peek.startswith("."):
            attribute = self.cursor.next().text[1:]
            if attribute == "align":
                align = self.cursor.integer()
            elif attribute in TYPES:
                ptx_type = attribute
            elif attribute in ("v2", "v4"):
                vector = int(attribute[1])
            elif attribute == "attribute":
                self.cursor.expect("(")
                while not self.cursor.accept(")"):
                    self.cursor.next()
            elif attribute in ("texref", "samplerref", "surfref"):
                space, ptx_type = "texture", "b64"
            else:
                self.cursor.fail(f"cannot read '.{attribute}' here")
        self._refuse(_wrong_type(ptx_type))
        if ptx_type not in TYPE_SIZES:
            self.cursor.fail(f"a variable needs a type, found {self.cursor.peek!r}")
        align = TYPE_SIZES[ptx_type] * vector if align is None else align
        self._check_align(align)
        found: list[Variable] = []
        while True:
            name = self.cursor.name()
            dims: list[int] = [vector] if vector > 1 else []
            extents: list[int] = []
            while self.cursor.accept("["):
                extents.append(0 if self.cursor.peek == "]" else self.cursor.integer())
                self.cursor.expect("]")
            if any(extent < 0 for extent in extents):
                self.cursor.fail(f"{name!r} has a negative extent")
            init: tuple[int | Symbol, ...] = ()
            if space == "texture":
                while self.cursor.peek not in (",", ";"):
                    self.cursor.next()
            elif self.cursor.accept("="):
                init = tuple(self._initialiser(ptx_type))
            shape = tuple(extents + dims)
            if shape and shape[0] == 0 and init:
                shape = (len(init), *shape[1:])
            variable = Variable(name, space, ptx_type, shape, align, init, external)
            if len(init) * TYPE_SIZES[ptx_type] > variable.nbytes:
                self.cursor.fail(f"{name!r} has more initial values than elements")
            self._refuse(_wrong_variable(variable, vector, module))
            found.append(variable)
            if self.cursor.accept(","):
                continue
            self.cursor.expect(";")
            return found

    def param_list(self) -> tuple[Param, ...]:
        """Return parameters of a function, or its results, in parentheses."""
        self.cursor.expect("(")
        params: list[Param] = []
        offset = 0
        while not self.cursor.accept(")"):
            ptx_type = ""
            align: int | None = None
            pointer = in_register = False
            while self.cursor.peek.startswith("."):
                word = self.cursor.next().text[1:]
                pointer = pointer or word == "ptr"  # what follows is of what it points at
                in_register |= word == "reg"
                if word == "align":
                    stated = self.cursor.integer()
                    align = align if pointer else stated
                elif word in TYPES:
                    ptx_type = word
                elif in_register and word in ("v2", "v4"):
                    self.cursor.fail("a vector register as a parameter: use scalars")
            name = self.cursor.name()
            count = 1
            if not in_register and self.cursor.accept("["):
                count = 0 if self.cursor.peek == "]" else self.cursor.integer()
                self.cursor.expect("]")
            if ptx_type not in TYPE_SIZES:
                self.cursor.fail(f"parameter {name!r} has no type")
            if count < 0:
                self.cursor.fail(f"parameter {name!r} has a negative extent")
            if name != "_" and any(name in (p.name, p.register) for p in params):
                self.cursor.fail(f"{name!r} is declared twice")
            align = TYPE_SIZES[ptx_type] if align is None else align
            self._check_align(align)
            offset = -(-offset // align) * align
            register = name if in_register else ""
            stored_name = f"{name}#param" if in_register else name
            params.append(Param(stored_name, ptx_type, count, align, offset, register))
            offset += params[-1].nbytes
            self.cursor.accept(",")
        return tuple(params)

    def register_declaration(self, function: Function) -> None:
        """``.reg .type name {, name<count>...} ;``."""
        self.cursor.next()
        ptx_type = self.cursor.next().text[1:]
        vector = 1
        if ptx_type in ("v2", "v4"):
            vector, ptx_type = int(ptx_type[1]), self.cursor.next().text[1:]
        self._refuse(_wrong_type(ptx_type))
        if vector > 1:
            self.cursor.fail("the simulator does not execute vector registers yet (use scalars)")
        if ptx_type not in TYPES:
            self.cursor.fail(f"cannot declare registers of type {ptx_type!r}")
        while True:
            name = self.cursor.name()
            if self.cursor.accept("<"):
                count = self.cursor.integer()
                self.cursor.expect(">")
                if not 0 <= count <= _MAX_REGISTERS - len(function.registers):
                    self.cursor.fail(f"{count + len(function.registers):,} registers")
                for i in range(count):
                    function.registers[self.names.declare(f"{name}{i}")] = ptx_type
            else:
                function.registers[self.names.declare(name)] = ptx_type
            if not self.cursor.accept(","):
                break
        self.cursor.expect(";")

    def _refuse(self, why: str) -> None:
        if why:
            self.cursor.fail(why)

    def _check_align(self, align: int) -> None:
        if not 0 < align <= _MAX_ALIGN or align & (align - 1):
            self.cursor.fail(f"an alignment of {align} bytes")

    def _initialiser(self, ptx_type: str, depth: int = 1) -> list[int | Symbol]:
        if self.cursor.accept("{"):
            self.cursor.enter(depth)
            values: list[int | Symbol] = []
            while not self.cursor.accept("}"):
                values += self._initialiser(ptx_type, depth + 1)
                self.cursor.accept(",")
            return values
        token = self.cursor.tokens[self.cursor.at]
        if token.kind == "word" and not self.constants.begins_constant:
            self.cursor.next()
            if token.text == "generic":
                self.cursor.expect("(")
                symbol = self.cursor.name()
                self.cursor.expect(")")
            else:
                symbol = token.text
            return [Symbol(symbol, self.operands.offset())]
        imm = self.constants.constant()
        if self.cursor.peek == "(":
            self.cursor.fail("a byte of an address, as in 0xff(name): write the whole address")
        if ptx_type in ("f32", "f64") and imm.kind == "int":
            self.cursor.fail(f"the whole number {imm.value} for a .{ptx_type}")
        if ptx_type in ("f32", "f64") and imm.kind != ptx_type:
            imm = float_constant(imm, ptx_type)
        return [imm.value]


def _wrong_type(ptx_type: str) -> str:
    """Return why nothing can be declared with a type; empty if it can."""
    if ptx_type in _NO_TYPE:
        return f"nothing is declared as .{ptx_type}: .b{8 * TYPE_SIZES[ptx_type]} holds it"
    return ""


def _wrong_variable(variable: Variable, vector: int, module: dict[str, Variable] | None) -> str:
    """Return why a variable cannot be declared so; empty if it can.

    ``vector``: elements of ``.v2`` or ``.v4``, else 1; ``module``: its variables so far, ``None``
    within a function.
    """
    name, space = variable.name, variable.space
    if variable.init and space in ("shared", "local", "param"):
        return f"{name!r} is in .{space} and cannot have an initial value"
    if 0 in variable.dims and not variable.external:
        return f"{name!r} has no extent"
    if vector * TYPE_SIZES[variable.type] > _VECTOR_BYTES:
        return f"{name!r} is a vector of more than {_VECTOR_BYTES} bytes"
    if module is None:
        return ""
    if space in ("local", "param", "tex"):
        return f"{name!r} is in .{space} and stands outside of a function"
    before = module.get(name)
    if before and not before.external and not variable.external:
        return f"{name!r} is declared twice"
    return ""
